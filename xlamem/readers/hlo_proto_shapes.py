"""A ShapeProto as HLO text: "f32[8,3]{1,0:T(8,128)S(1)}". Shapes have one parser, that of text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from xlamem.readers import hlo_schema
from xlamem.readers.hlo_module import sized
from xlamem.shape import Shape

#: xla_data.proto's PrimitiveType.
_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16",
    11: "f32", 12: "f64", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2",
    20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2",
    27: "u2", 28: "f8e4m3", 29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu",
}  # fmt: skip
_TUPLE = 13


def shape_text(proto: Any) -> str:
    """The text XLA prints for a ShapeProto."""
    kind = proto.element_type
    if kind == _TUPLE:
        parts = []
        for i, part in enumerate(proto.tuple_shapes):
            mark = f"/*index={i}*/" if i and i % 5 == 0 else ""
            parts.append(mark + shape_text(part))
        return f"({', '.join(parts)})"
    name = _TYPES.get(kind, f"type{kind}")
    if name in ("token", "opaque"):
        return f"{name}[]"
    dynamic = list(proto.is_dynamic_dimension)
    sizes = (
        f"<={size}" if i < len(dynamic) and dynamic[i] else str(size)
        for i, size in enumerate(proto.dimensions)
    )
    layout = _layout_text(proto.layout) if proto.HasField("layout") else ""
    return f"{name}[{','.join(sizes)}]{layout}"


def _layout_text(proto: Any) -> str:
    extra = ""
    if proto.tiles:
        extra += "T" + "".join(f"({','.join(map(_tile_size, t.dimensions))})" for t in proto.tiles)
    if proto.tail_padding_alignment_in_elements > 1:
        extra += f"L({proto.tail_padding_alignment_in_elements})"
    if proto.element_size_in_bits:
        extra += f"E({proto.element_size_in_bits})"
    if proto.memory_space:
        extra += f"S({proto.memory_space})"
    for split in proto.split_configs:
        extra += f"SC({split.dimension}:{','.join(map(str, split.split_indices))})"
    if proto.dynamic_shape_metadata_prefix_bytes:
        extra += f"M({proto.dynamic_shape_metadata_prefix_bytes})"
    order = ",".join(map(str, proto.minor_to_major))
    # A scalar's empty layout is not printed.
    if not order and not extra:
        return ""
    return f"{{{order}:{extra}}}" if extra else f"{{{order}}}"


def _tile_size(size: int) -> str:
    # The most negative number stands for "combine with the next": printed as a star.
    return "*" if size == -(2**63) else str(size)


@lru_cache(maxsize=65536)
def sized_at(data: bytes, index: tuple[int, ...] = ()) -> tuple[Shape | None, int | None]:
    """The shape that a serialized ShapeProto holds, or its part at ``index``, and its padded bytes.

    None for both where there is none.
    """
    proto = _decoded(data)
    for i in index:
        if not 0 <= i < len(proto.tuple_shapes):
            return None, None
        proto = proto.tuple_shapes[i]
    return sized(shape_text(proto))


@lru_cache(maxsize=1024)
def _decoded(data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    proto = hlo_schema.message("Shape")()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        proto.Clear()
    return proto
