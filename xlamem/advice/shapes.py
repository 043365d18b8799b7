"""What would make one padded shape smaller, computed from the tile rules.

Nothing here is compiled: XLA chooses the layout of every buffer inside a program again after any change,
so these are the changes worth trying and what they can save at best.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from xlamem.finding import Advice
from xlamem.layouts import default_layout, orders
from xlamem.shape import Shape
from xlamem.units import format_size

_NARROWER = {"f64": "f32", "f32": "bf16", "s64": "s32", "u64": "u32", "s32": "s16", "u32": "u16"}
_JAX_NAME = {"bf16": "jnp.bfloat16", "f32": "jnp.float32", "s32": "jnp.int32", "u32": "jnp.uint32"} | {
    "s16": "jnp.int16",
    "u16": "jnp.uint16",
}


def advise_shape(shape: Shape, target: str) -> tuple[Advice, ...]:
    """Changes to an array of ``shape`` on ``target`` that save bytes, the largest saving first.

    Args:
        shape: an array with or without a layout; without one, the layout that XLA would pick is meant.
        target: a TPU generation.

    Returns:
        Advice with ``before`` and ``after`` in bytes of this one buffer. Empty if nothing is padded.

    Raises:
        UnknownTargetError: ``target`` is no chip.
    """
    if shape.is_tuple or shape.rank == 0:
        return ()
    now = shape if shape.layout is not None else default_layout(shape, target)
    if now.padding <= 0:
        return ()
    candidates = [
        *_orders(now, target),
        *_squeezed(now, target),
        *_merged(now, target),
        *_narrower(now, target),
    ]
    helpful = [a for a in candidates if a.saved is not None and a.saved > 0]
    helpful.sort(key=lambda a: (a.name == "dtype", -(a.saved or 0)))
    return (*helpful, *_filled(now))


def _layout_text(shape: Shape) -> str:
    text = str(shape)
    return text[text.index("{") :]


def _orders(now: Shape, target: str) -> Iterator[Advice]:
    """Another order of the axes in memory; the values and the code around stay as they are."""
    if now.layout is None or now.rank < 2:
        return
    ranked = [s for s in orders(now, target) if s.layout is not None and s.padded_bytes < now.padded_bytes]
    if not ranked:
        return
    best = ranked[0]
    assert best.layout is not None
    minor = best.layout.minor_to_major
    major_to_minor = tuple(reversed(minor))
    others = ", ".join(f"{_layout_text(s)} {format_size(s.padded_bytes)}" for s in ranked[1:3])
    text = (
        f"Keep axis {minor[0]} (size {now.dims[minor[0]]}) on the lanes and axis {minor[1]} "
        f"(size {now.dims[minor[1]]}) on the sublanes: {_layout_text(best)} takes "
        f"{format_size(best.padded_bytes)}."
    )
    if others:
        text += f" Next best: {others}."
    text += (
        " For an argument or a result: Format(Layout(...), sharding) in in_shardings or out_shardings. All are"
        " in jax.experimental.layout."
    )
    yield Advice(
        name="order",
        text=text,
        how=f"x = with_layout_constraint(x, Layout(major_to_minor={major_to_minor}))",
        before=now.padded_bytes,
        after=best.padded_bytes,
        safe=True,
    )


def _squeezed(now: Shape, target: str) -> Iterator[Advice]:
    """Dropping axes of size 1."""
    units = [axis for axis, size in enumerate(now.dims) if size == 1]
    if not units or len(units) == now.rank:
        return
    after = default_layout(now.with_dims([size for size in now.dims if size != 1]), target)
    axes = f"axis={units[0]}" if len(units) == 1 else f"axis={tuple(units)}"
    words = f"axis {units[0]}, of size 1," if len(units) == 1 else f"the axes of size 1 ({_list(units)})"
    yield Advice(
        name="squeeze",
        text=f"Without {words} XLA would pick {after}: {format_size(after.padded_bytes)}.",
        how=f"x = jnp.squeeze(x, {axes})",
        before=now.padded_bytes,
        after=after.padded_bytes,
        safe=True,
    )


def _merged(now: Shape, target: str) -> Iterator[Advice]:
    """Merging neighbouring axes, so that a small one no longer has a tile dimension to itself.

    A reshape of logical neighbours changes no value; the best pair, or run down to the last axis, is kept.
    """
    if now.rank < 2:
        return
    options: list[tuple[int, int, int, list[int], Shape]] = []
    runs = [*pairwise(range(now.rank)), *((start, now.rank - 1) for start in range(now.rank - 2))]
    for first, last in runs:
        merged = 1
        for size in now.dims[first : last + 1]:
            merged *= size
        if min(now.dims[first : last + 1]) == 1:
            continue  # that is squeezing
        dims = [*now.dims[:first], merged, *now.dims[last + 1 :]]
        after = default_layout(now.with_dims(dims), target)
        options.append((after.padded_bytes, last - first, first, dims, after))
    if not options:
        return
    size, length, first, dims, after = min(options, key=lambda option: option[:2])
    yield Advice(
        name="merge",
        text=f"With axes {first} to {first + length} merged XLA would pick {after}: {format_size(size)}.",
        how=f"x = x.reshape({', '.join(map(str, dims))})",
        before=now.padded_bytes,
        after=size,
        safe=True,
    )


def _narrower(now: Shape, target: str) -> Iterator[Advice]:
    """An element type of half the width, or one byte a truth value where XLA stores 32 bits."""
    if now.dtype == "pred" and now.layout is not None and now.layout.element_bits == 32:
        after = default_layout(now, target)
        yield Advice(
            name="dtype",
            text=f"Truth values are stored in 32 bits each here; as int8 they would take "
            f"{format_size(after.padded_bytes)}.",
            how="mask = mask.astype(jnp.int8)",
            before=now.padded_bytes,
            after=after.padded_bytes,
            safe=True,
        )
        return
    narrow = _NARROWER.get(now.dtype)
    if narrow is None:
        return
    # In the order that it has now: another order is another change.
    narrowed = _in_the_same_order(now, narrow, target)
    if narrowed is None:
        return
    caution = "with fewer digits" if now.dtype.startswith("f") else "if its values fit"
    yield Advice(
        name="dtype",
        text=f"As {narrow}, {caution}, and in the same order of axes: {narrowed}, "
        f"{format_size(narrowed.padded_bytes)}.",
        how=f"x = x.astype({_JAX_NAME[narrow]})",
        before=now.padded_bytes,
        after=narrowed.padded_bytes,
        safe=False,
    )


def _in_the_same_order(now: Shape, dtype: str, target: str) -> Shape | None:
    """``now`` with another element type and the tile that XLA picks for that, the axes where they are."""
    if now.layout is None:
        return None
    other = now.with_dtype(dtype)
    if now.rank < 2:
        return default_layout(other, target)
    wanted = now.layout.minor_to_major[:2]
    for shape in orders(other, target):
        if shape.layout is not None and shape.layout.minor_to_major[:2] == wanted:
            return shape
    return None


def _filled(now: Shape) -> Iterator[Advice]:
    """The padding put to use: a size up to which the padded axis grows for nothing."""
    axes = [p for p in now.axis_padding if p.axis is not None and p.size > 1 and p.padded > p.size]
    if not axes:
        return
    changes = ", ".join(f"axis {p.axis} from {p.size} to {p.padded}" for p in axes)
    yield Advice(
        name="multiple",
        text=f"In this layout {changes} would cost nothing more: a multiple of the tile leaves no padding.",
        how=None,
        before=now.padded_bytes,
        after=now.padded_bytes,
        safe=None,
    )


def _list(axes: list[int]) -> str:
    return ", ".join(map(str, axes))
