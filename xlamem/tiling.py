"""How a layout orders and tiles an array, and what the tiles cost.

A layout lists the axes from the fastest-varying one on (``minor_to_major``): on a TPU the first are the
*lanes*, the second the *sublanes*. Tiles cut the array, in that order, into blocks that are stored whole;
a block that is not full is padded. The size rule here was checked against the compiler's own buffer
assignment, libtpu 0.0.42.1, v2 to v7x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple

#: The ``*`` of a tile: the axis is first merged with the next more minor one.
COMBINE = -1

#: Why something is larger in memory than it is; see :class:`AxisPadding`.
Why = Literal["lane", "sublane", "tile", "scalar", "packing", "element", "split", "tail", "prefix"]


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands in the braces after an array shape: ``{1,0:T(8,128)(2,1)E(4)S(1)}``.

    ``str()`` gives the text back as XLA prints it. Nothing is dropped: the rarer decorations are kept too.
    """

    #: The axes, most minor (fastest-varying) first.
    minor_to_major: tuple[int, ...] = ()
    #: T: tile levels, outermost first; each lists its sizes from major to minor, ``COMBINE`` for ``*``.
    tiles: tuple[tuple[int, ...], ...] = ()
    #: E: bits that one element is stored in; None where it is the type's own.
    element_bits: int | None = None
    #: S: memory space; on TPU 0 HBM, 1 VMEM, 2 SMEM, 3 CMEM, 5 pinned host, 6 and 8 SparseCore.
    memory_space: int = 0
    #: M: bytes put before a dynamic array to say how large it is.
    dynamic_prefix: int = 0
    #: L: the number of elements is rounded up to a multiple of this, after tiling.
    tail_alignment: int = 1
    #: SC: per split axis, where it is cut into pieces that live on different cores.
    splits: tuple[tuple[int, tuple[int, ...]], ...] = ()
    #: D: how each axis is stored ("D" dense, "C" compressed ...), for sparse arrays.
    dim_levels: tuple[str, ...] = ()
    #: "#" and "*": types of the indices and pointers of a sparse array.
    index_type: str | None = None
    pointer_type: str | None = None
    #: P: text of the shape that a sparse array is stored as.
    physical_shape: str | None = None
    #: Names of the decorations in the text's order, where it is not XLA's.
    order: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        parts = {
            "D": f"D({','.join(self.dim_levels)})" if self.dim_levels else "",
            "T": "T" + "".join(map(_tile_text, self.tiles)) if self.tiles else "",
            "L": f"L({self.tail_alignment})" if self.tail_alignment != 1 else "",
            "#": f"#({self.index_type})" if self.index_type else "",
            "*": f"*({self.pointer_type})" if self.pointer_type else "",
            "E": f"E({self.element_bits})" if self.element_bits is not None else "",
            "S": f"S({self.memory_space})" if self.memory_space else "",
            "SC": "SC" + "".join(f"({axis}:{_join(cuts)})" for axis, cuts in self.splits)
            if self.splits
            else "",
            "P": f"P({self.physical_shape})" if self.physical_shape else "",
            "M": f"M({self.dynamic_prefix})" if self.dynamic_prefix else "",
        }
        decorations = "".join(parts[name] for name in self.order or parts)
        return f"{{{_join(self.minor_to_major)}{':' if decorations else ''}{decorations}}}"


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _tile_text(tile: Sequence[int]) -> str:
    return f"({','.join('*' if size == COMBINE else str(size) for size in tile)})"


class AxisPadding(NamedTuple):
    """One reason why an array takes more memory than its elements: from ``size`` up to ``padded``.

    ``axis`` is the logical axis, or None where it is no axis: a scalar, an axis that the tile adds, the
    element itself. ``size`` and ``padded`` count elements along the axis, but bits for ``element`` and bytes
    for ``prefix``. The ``factor`` values of one shape multiply to its expansion. ``why`` is one of

    - ``lane``: the most minor axis is padded to the tile's last size, 128 lanes;
    - ``sublane``: the second-minor axis is padded to the tile's second-last size;
    - ``tile``: another axis is, or the only one of a one-dimensional tile;
    - ``scalar``: a scalar fills a whole tile;
    - ``packing``: a further tile level, such as (2,1), asks for more: narrow types share a 32-bit sublane;
    - ``element``: an element is stored in more bits than it has;
    - ``split``: only the largest of the pieces that lie on different cores counts (a factor below 1);
    - ``tail``, ``prefix``: elements added behind, bytes added in front.
    """

    axis: int | None
    size: int
    padded: int
    why: Why

    @property
    def factor(self) -> float:
        """``padded / size``."""
        return self.padded / self.size

    @property
    def text(self) -> str:
        """In words: "axis 1: 1 padded to 2 sublanes (2x)"."""
        who = {"scalar": "scalar", "element": "each element", "tail": "all elements", "prefix": "bytes"}.get(
            self.why, "added axis" if self.axis is None else f"axis {self.axis}"
        )
        return f"{who}: {self.change}"

    @property
    def change(self) -> str:
        """The same without the axis: "1 padded to 2 sublanes (2x)"."""
        unit = {
            "lane": " lanes",
            "sublane": " sublanes",
            "packing": " by packing",
            "element": " bits",
            "scalar": " elements",
            "split": " on each core",
        }.get(self.why, "")
        verb = "cut" if self.why == "split" else "padded"
        return f"{self.size} {verb} to {self.padded}{unit} ({format_factor(self.factor)})"


def format_factor(factor: float) -> str:
    """A ratio for people: "2x", "1.33x", "512x", "<1.01x" for one that would round to 1."""
    if 1 < factor < 1.01:
        return "<1.01x"
    return f"{factor:.0f}x" if factor >= 100 else f"{factor:.2f}".rstrip("0").rstrip(".") + "x"


def piece(size: int, cuts: Sequence[int]) -> int:
    """The largest piece of an axis of ``size`` that is cut at ``cuts``."""
    edges = [0, *sorted(min(cut, size) for cut in cuts), size]
    return max(b - a for a, b in pairwise(edges))


def physical_dims(dims: Sequence[int], layout: Layout) -> list[int]:
    """The sizes in the order of memory, most major first, of the largest piece if the array is split."""
    sizes = list(dims)
    for axis, cuts in layout.splits:
        sizes[axis] = piece(sizes[axis], cuts)
    return [sizes[axis] for axis in reversed(layout.minor_to_major)]


def tiled_count(dims: Sequence[int], layout: Layout) -> int:
    """How many elements are stored, padding included.

    Each tile level replaces the last axes by how many tiles they need and the tile's own sizes; the next
    level works on the end of that. A tile longer than the array meets axes of size 1.
    """
    current = physical_dims(dims, layout)
    for tile in layout.tiles:
        if not tile:
            continue
        if COMBINE in tile or len(tile) > len(current):
            keyed, tile = _align([(size, 0) for size in current], tile)
            current = [size for size, _ in keyed]
        start = len(current) - len(tile)
        current[start:] = [-(-size // t) for size, t in zip(current[start:], tile, strict=True)] + list(tile)
    count = prod(current)
    if layout.tiles and layout.tail_alignment > 1:
        count = -(-count // layout.tail_alignment) * layout.tail_alignment
    return count


def _align(
    current: list[tuple[int, int]], tile: tuple[int, ...]
) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    """Axes and tile made equally long at the end: 1s put in front of the axes, ``*`` axes merged.

    An axis is (size, key): the logical axis, or a negative number for an axis that was put in front.
    """
    missing = len(tile) - len(current)
    current = [(1, -1 - i) for i in range(missing)] + current
    if COMBINE not in tile:
        return current, tile
    start = len(current) - len(tile)
    merged, sizes, pending = current[:start], [], 1
    for (size, key), t in zip(current[start:], tile, strict=True):
        pending *= size
        if t != COMBINE:
            merged.append((pending, key))
            sizes.append(t)
            pending = 1
    if pending != 1:  # a "*" on the most minor axis has nothing to merge with
        merged.append((pending, current[-1][1]))
        sizes.append(1)
    return merged, tuple(sizes)


def tile_padding(dims: Sequence[int], layout: Layout) -> list[AxisPadding]:
    """What :func:`tiled_count` adds, by logical axis: most minor first, then what deeper tile levels add.

    ``dims`` must hold no 0.
    """
    found = [
        AxisPadding(axis, dims[axis], piece(dims[axis], cuts), "split")
        for axis, cuts in layout.splits
        if piece(dims[axis], cuts) != dims[axis]
    ]
    axes = reversed(layout.minor_to_major)
    current = list(zip(physical_dims(dims, layout), axes, strict=True))
    for level, tile in enumerate(layout.tiles):
        if not tile:
            continue
        current, tile = _align(current, tile)
        start = len(current) - len(tile)
        total: dict[int, int] = {}  # elements along each axis, over all the sizes it has been cut into
        for size, key in current:
            total[key] = total.get(key, 1) * size
        for i in reversed(range(len(tile))):
            size, key = current[start + i]
            needed = -(-size // tile[i]) * tile[i]
            if needed != size:
                grown = total[key] // size * needed
                why = _why(level, len(tile), len(tile) - 1 - i, len(dims))
                found.append(AxisPadding(key if key >= 0 else None, total[key], grown, why))
                total[key] = grown
        counts = [(-(-size // t), key) for (size, key), t in zip(current[start:], tile, strict=True)]
        sizes = [(t, key) for (_, key), t in zip(current[start:], tile, strict=True)]
        current[start:] = counts + sizes
    return found


def _why(level: int, tile_rank: int, from_minor: int, rank: int) -> Why:
    if rank == 0:
        return "scalar"
    if level > 0:
        return "packing"
    if tile_rank == 1 or from_minor > 1:
        return "tile"
    return "sublane" if from_minor else "lane"
