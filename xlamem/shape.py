"""HLO shapes with tiled layouts: what they say, how many bytes they take, and where padding comes from.

Reads and prints the shape grammar of XLA, ``bf16[10,64]{1,0:T(8,128)(2,1)S(1)}`` and tuples of such.
Standard library only: importing this costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

from xlamem import shape_grammar as grammar
from xlamem.element_types import BITS
from xlamem.errors import InputError, ParseError
from xlamem.shape_grammar import UNBOUNDED
from xlamem.tiling import AxisPadding, Layout, tile_padding, tiled_count

__all__ = ["UNBOUNDED", "AxisPadding", "Layout", "Shape"]

# The element types of what is no array: a tuple, and a buffer "b(f32[8])" (a mutable array that holds one).
_CONTAINERS = ("tuple", "buffer")

# A whole array shape without white space, as compilers print it; everything else takes the slower path.
_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([0-9,]*)\](\{[^{} ]*\})?")
_ANNOTATED_EVERY = 5


@dataclass(frozen=True, slots=True)
class Shape:
    """One HLO shape: an array, a tuple of shapes, a token, an opaque, or a buffer.

    ``str()`` gives the text back as XLA prints it. Two shapes are equal if they mean the same, whether or
    not their tuples were printed with ``/*index=5*/`` comments.
    """

    #: The element type as HLO names it ("bf16"), "tuple" or "buffer".
    dtype: str
    #: The size of each logical axis; a bound ``<=8`` counts as 8, ``?`` is ``UNBOUNDED``.
    dims: tuple[int, ...] = ()
    #: Per axis whether its size is only known at run time.
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None
    #: What a tuple consists of; the one array of a buffer.
    elements: tuple[Shape, ...] = ()
    #: Whether a long tuple is printed with a comment before every fifth element.
    annotated: bool = field(default=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.dynamic) != len(self.dims):
            object.__setattr__(self, "dynamic", (False,) * len(self.dims))

    @staticmethod
    def parse(text: str) -> Shape:
        """The shape that ``text`` is, white space around it aside. Results are cached.

        Raises:
            ParseError: ``text`` is not one shape; the message shows where and why.
        """
        # Keeping a text that is megabytes long alive only helps whoever sent it.
        return _parse(text) if len(text) < 10_000 else _parse.__wrapped__(text)

    @staticmethod
    def parse_prefix(text: str, start: int = 0) -> tuple[Shape, int]:
        """The longest shape that begins exactly at ``start``, and the offset just after it.

        Raises:
            ParseError: no shape begins there, or it breaks off.
        """
        found = _plain_array(text, start)
        return found if found is not None else _read(text, start)

    def __str__(self) -> str:
        if self.dtype == "tuple":
            return f"({self._joined()})"
        if self.dtype == "buffer":
            return f"b({self._joined()})"
        dims = ",".join(
            "?" if size == UNBOUNDED else f"<={size}" if dynamic else str(size)
            for size, dynamic in zip(self.dims, self.dynamic, strict=True)
        )
        return f"{self.dtype}[{dims}]{'' if self.layout is None else self.layout}"

    def _joined(self) -> str:
        parts = []
        for i, element in enumerate(self.elements):
            comment = f"/*index={i}*/" if self.annotated and i and i % _ANNOTATED_EVERY == 0 else ""
            parts.append(comment + str(element))
        return ", ".join(parts)

    @property
    def is_tuple(self) -> bool:
        """Whether this is a tuple, empty or not."""
        return self.dtype == "tuple"

    @property
    def rank(self) -> int:
        """The number of logical axes."""
        return len(self.dims)

    @property
    def count(self) -> int:
        """The number of elements, of all arrays together for a tuple; an unbounded axis counts as 1."""
        if self.elements:
            return sum(element.count for element in self.elements)
        return prod(_counted(self.dims)) if self.bits else 0

    @property
    def bits(self) -> int:
        """Bits of the element type; 0 where there are no elements."""
        return BITS.get(self.dtype, 0)

    def leaves(self) -> tuple[Shape, ...]:
        """The shapes at the bottom of a nested tuple, in order; a shape that is no tuple is its own leaf."""
        if not self.is_tuple:
            return (self,)
        return tuple(leaf for element in self.elements for leaf in element.leaves())

    @property
    def padded_bytes(self) -> int:
        """Bytes in memory, tile padding included; of all arrays together for a tuple.

        With a layout this is what the compiler reserves (the rule was checked against the buffer
        assignment of libtpu 0.0.42.1). Without a tile it is the elements, a byte at least for each. A tuple
        itself is a table of pointers: see :meth:`padded_bytes_on`, which also knows that a TPU gives a
        scalar without a tile 1024 elements.
        """
        if self.elements:
            return sum(element.padded_bytes for element in self.elements)
        if not self.bits:
            return 0
        layout = self.layout
        if layout is None:
            return self.count * max(8, self.bits) // 8
        dims = _counted(self.dims)
        count = tiled_count(dims, layout) if layout.tiles or layout.splits else prod(dims)
        return -(-count * self._stored_bits // 8) + layout.dynamic_prefix

    def padded_bytes_on(self, target: str) -> int:
        """Bytes in memory of ``target``: :attr:`padded_bytes`, but for two things that the text leaves open.

        A tuple is the size of its table of pointers, not of what they point to. On a TPU a scalar without a
        tile takes 1024 elements, except in the memories for scalars, S(2) and S(8).

        Raises:
            UnknownTargetError: no chip of that name.
        """
        from xlamem import targets  # not needed to read a shape

        device = targets.get(target)
        if self.is_tuple:
            if device.tuple_alignment is None:
                return 8 * len(self.elements)
            return -(-4 * len(self.elements) // device.tuple_alignment) * device.tuple_alignment
        layout = self.layout or Layout()
        if device.kind == "tpu" and not self.dims and not layout.tiles and layout.memory_space not in (2, 8):
            return 1024 * self._stored_bits // 8 + (layout.dynamic_prefix if self.bits else 0)
        return self.padded_bytes

    @property
    def unpadded_bytes(self) -> int:
        """Bytes of the elements alone; of all arrays together for a tuple.

        An element narrower than a byte counts as a byte unless the layout packs it, E(4). One that the
        layout widens, pred with E(32), counts as it is: so do the "Unpadded size" lines of TPU reports.
        """
        if self.elements:
            return sum(element.unpadded_bytes for element in self.elements)
        return -(-self.count * self._own_bits // 8)

    @property
    def padding(self) -> int:
        """``padded_bytes - unpadded_bytes``."""
        return self.padded_bytes - self.unpadded_bytes

    @property
    def expansion(self) -> float | None:
        """``padded_bytes / unpadded_bytes``: 1.0 means no padding. None if there are no elements."""
        unpadded = self.unpadded_bytes
        return self.padded_bytes / unpadded if unpadded else None

    @property
    def axis_padding(self) -> tuple[AxisPadding, ...]:
        """Which logical axes are padded, from what to what and on what; () for a tuple or without padding.

        Lanes come first, then sublanes, then the rest. The factors multiply to :attr:`expansion`, but for
        the last byte of elements narrower than one.
        """
        layout = self.layout
        if layout is None or not self.count or self.elements:
            return ()
        dims = _counted(self.dims)
        found = tile_padding(dims, layout)
        if layout.tiles and layout.tail_alignment > 1:
            before = tiled_count(dims, replace(layout, tail_alignment=1))
            found.append(AxisPadding(None, before, tiled_count(dims, layout), "tail"))
        found.append(AxisPadding(None, self._own_bits, self._stored_bits, "element"))
        after = self.padded_bytes
        found.append(AxisPadding(None, after - layout.dynamic_prefix, after, "prefix"))
        return tuple(part for part in found if part.size != part.padded)

    @property
    def _stored_bits(self) -> int:
        """Bits that one element takes in memory."""
        explicit = self.layout.element_bits if self.layout else None
        return explicit or (max(8, self.bits) if self.bits else 0)

    @property
    def _own_bits(self) -> int:
        """Bits that one element takes without what a layout adds."""
        return min(self._stored_bits, max(8, self.bits)) if self.bits else 0

    def with_layout(
        self,
        minor_to_major: Sequence[int],
        tiles: Sequence[Sequence[int]] = (),
        element_bits: int | None = None,
        memory_space: int = 0,
    ) -> Shape:
        """This array in another layout.

        Raises:
            InputError: ``minor_to_major`` does not list each axis once, or this is a tuple.
        """
        if self.dtype in _CONTAINERS or sorted(minor_to_major) != list(range(self.rank)):
            raise InputError(f"a layout of {self} must list each of its {self.rank} axes once")
        levels = tuple(map(tuple, tiles))
        return replace(self, layout=Layout(tuple(minor_to_major), levels, element_bits, memory_space))

    def without_layout(self) -> Shape:
        """This shape without any layout, in tuples too."""
        return replace(self, layout=None, elements=tuple(e.without_layout() for e in self.elements))

    def with_dims(self, dims: Sequence[int]) -> Shape:
        """This array with other sizes, none of them dynamic; the layout stays if the rank does."""
        layout = self.layout if len(dims) == self.rank else None
        return replace(self, dims=tuple(dims), dynamic=(), layout=layout)

    def with_dtype(self, dtype: str) -> Shape:
        """This array with another element type: same order and tile, elements stored in the type's own bits.

        Raises:
            ParseError: no such element type.
        """
        grammar.read_element_type(dtype, 0)
        return replace(self, dtype=dtype, layout=self.layout and replace(self.layout, element_bits=None))

    def assume_tile(self) -> Shape:
        """This shape with the tile T(8,128) wherever an array of rank 2 and more has none.

        TPU reports up to 2019 printed no tiles although memory was tiled. A guess: say so beside the result.
        """
        if self.elements:
            return replace(self, elements=tuple(e.assume_tile() for e in self.elements))
        if self.rank < 2 or (self.layout is not None and self.layout.tiles):
            return self
        layout = self.layout or Layout(tuple(reversed(range(self.rank))))
        return replace(self, layout=replace(layout, tiles=((8, 128),), order=()))


def _counted(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if size == UNBOUNDED else size for size in dims) if UNBOUNDED in dims else dims


@lru_cache(maxsize=1 << 16)
def _parse(text: str) -> Shape:
    start = grammar.skip(text, 0)
    shape, end = Shape.parse_prefix(text, start)
    rest = grammar.skip(text, end)
    if rest < len(text):
        raise ParseError(f"the shape {_short(text[start:end])} ends here, and something follows", text, rest)
    return shape


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


@lru_cache(maxsize=1 << 14)
def _plain_layout(text: str, rank: int) -> Layout | None:
    """The layout that ``text`` is; None leaves it to the slower path to say what is wrong with it."""
    try:
        return grammar.read_layout(text, 0, rank)[0]
    except ParseError:
        return None


def _plain_array(text: str, start: int) -> tuple[Shape, int] | None:
    """An array as compilers print it, at ``start``; None where it takes more than this to read it."""
    match = _ARRAY.match(text, start)
    if match is None:
        return None
    dtype, sizes, braces = match.groups()
    # A longer one has an absurd number in it, or is rare enough to go the slower way.
    if not BITS.get(dtype) or len(sizes) > 100:
        return None
    try:
        dims = tuple(map(int, sizes.split(","))) if sizes else ()
    except ValueError:
        return None
    end = match.end()
    layout = None
    if braces:
        layout = _plain_layout(braces, len(dims)) if len(braces) < 200 else None
        if layout is None:
            return None
    elif grammar.at_layout(text, end) is not None:
        return None
    if dims and max(dims) >= 1 << 63:
        return None
    return Shape(dtype, dims, (False,) * len(dims), layout), end


def _read(text: str, pos: int) -> tuple[Shape, int]:
    return grammar.read_nested(text, pos, _plain_or_other_array, _container)


def _plain_or_other_array(text: str, pos: int) -> tuple[Shape, int]:
    return _plain_array(text, pos) or _read_array(text, pos)


def _container(dtype: str, elements: list[Shape], annotated: bool) -> Shape:
    annotated = annotated or len(elements) <= _ANNOTATED_EVERY  # a short tuple looks the same either way
    return Shape(dtype, elements=tuple(elements), annotated=annotated)


def _read_array(text: str, pos: int) -> tuple[Shape, int]:
    dtype, pos = grammar.read_element_type(text, pos)
    dims, dynamic, end = grammar.read_dims(text, pos)
    layout = None
    if BITS[dtype]:
        brace = grammar.at_layout(text, end)
        if brace is not None:
            layout, end = grammar.read_layout(text, brace, len(dims))
    elif dims:
        raise ParseError(f"a {dtype} has no sizes: {dtype}[]", text, pos)
    return Shape(dtype, tuple(dims), tuple(dynamic), layout), end
