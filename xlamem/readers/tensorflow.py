"""TensorFlow's own sentence when an operation's result does not fit::

    OOM when allocating tensor with shape[8,64] and type float on /job:.../device:GPU:0 by allocator GPU_0_bfc
         [[{{node model/mul}}]]

It prints no bytes: they are computed from the shape and the type. Before 2018 there is no type, and so none.
Newer ones may only say ``failed to allocate memory [Op:AddV2]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import sentence, source
from xlamem.report import Allocation, Backend, MemoryReport, Space
from xlamem.shape import Shape
from xlamem.units import Size

_LINE = re.compile(
    r"""
      OOM\s+when\s+allocating\s+tensor\s+(?:with|of)\s+shape\s*\[(?P<dims>[\d,\ ]{0,200}\])
        (?:\s+and\s+type\s+(?P<type>[a-z]\w{0,30})(?=[\s\\.]))?
        (?:\s+on\s+(?P<device>/[^\s\\"']{1,200}))?
        (?:\s+by\s+allocator\s+(?P<allocator>[\w.\-]{1,60}))?
    | (?:RESOURCE_EXHAUSTED|Resource\ exhausted|ResourceExhaustedError)[^\n]{0,60}?
        :\s*failed\s+to\s+allocate\s+memory\b(?:\s*\[Op:(?P<op>\w{1,60})\])?
    """,
    re.VERBOSE,
)
_NODE = re.compile(r"\[\[(?:\{\{node\s+|node\s+|Node:\s*)([^\s{}\[\]=]{1,300})")
_OP = re.compile(r"\[Op:(\w{1,60})\]")

#: TensorFlow's names of element types in HLO's words.
_TYPES = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "bfloat16": "bf16",
    "bool": "pred",
    "complex64": "c64",
    "complex128": "c128",
    "qint8": "s8",
    "quint8": "u8",
    "qint16": "s16",
    "quint16": "u16",
    "qint32": "s32",
    "float8_e5m2": "f8e5m2",
    "float8_e4m3fn": "f8e4m3fn",
    **{f"int{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}


def read_tensorflow(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such sentence in ``lines``. ``name`` is the input's, for the reports' source."""
    text = lines.text
    for match in _LINE.finditer(text):
        backend = _backend(match["device"], match["allocator"])
        space = "host" if backend == "cpu" else "hbm"
        shape = _shape(match["dims"], match["type"])
        size = Size(shape.unpadded_bytes) if shape is not None else None
        node = _operation(text, match)
        allocations: tuple[Allocation, ...] = ()
        if shape is not None and size is not None:
            allocations = (
                Allocation(
                    space=space,
                    kind="output",
                    bytes=size,
                    unpadded_bytes=size,
                    shape=shape,
                    op_name=node,
                    provenance="computed",
                    line=lines.number_at(match.start()),
                ),
            )
        notes = [f"Allocator {match['allocator']}."] if match["allocator"] else []
        if size is not None:
            notes.append("TensorFlow prints no bytes here: they are computed from the shape and the type.")
        elif node:
            notes.append(f"Requested by op {node}.")
        yield MemoryReport(
            kind="host" if backend == "cpu" else "runtime-alloc",
            severity="error",
            source=source(lines, name, "tensorflow-oom", *match.span()),
            message=sentence(text, *match.span()),
            backend=backend,
            fits=False,
            provenance="computed" if size is not None else "reported",
            spaces=(Space(name=space, requested=size),),
            allocations=allocations,
            notes=tuple(notes),
        )


def _backend(device: str | None, allocator: str | None) -> Backend:
    place = f"{device or ''} {allocator or ''}".lower()
    if "gpu" in place:
        return "gpu"
    if "tpu" in place:
        return "tpu"
    return "cpu" if "cpu" in place else "gpu"


def _shape(dims: str | None, dtype: str | None) -> Shape | None:
    """The tensor's shape; None where a size or the type is unknown."""
    element = _TYPES.get(dtype or "")
    if dims is None or element is None:
        return None
    parts = [part.strip() for part in dims.rstrip("]").split(",")]
    if parts == [""]:
        return Shape(element)
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        return None
    shape = Shape(element, tuple(map(int, parts)))
    return shape if shape.unpadded_bytes < 1 << 63 else None


def _operation(text: str, match: re.Match[str]) -> str | None:
    if match["op"]:
        return str(match["op"])
    # On the same line, or on the next one if that is nothing else.
    first, _, rest = text[match.end() : match.end() + 800].partition("\n")
    found = _NODE.search(first) or _OP.search(first) or _NODE.match(rest.lstrip())
    return found[1] if found else None
