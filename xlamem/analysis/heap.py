"""The values of a heap, known by place and time at once and by name only when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from xlamem.analysis.occupancy import Extent
from xlamem.lazy import Lazy
from xlamem.report import Buffer
from xlamem.shape import Shape


class Timed(NamedTuple):
    """Where a value lies and when it is needed: first and last position; None if that is not known."""

    extent: Extent
    live: tuple[int, int] | None


class HeapValues(Lazy[Buffer]):
    """The values of one allocation: ``timed`` says where and when, ``make`` the rest of the one with a number.

    A program has tens of thousands of values, and few of them are alive at its peak. ``peak`` is its position:
    what is alive there has ``at_peak`` set; None leaves it open.
    """

    __slots__ = ("_alive", "_one", "peak", "timed")

    def __init__(self, timed: Sequence[Timed], make: Callable[[int, bool | None], Buffer]) -> None:
        super().__init__(len(timed), tuple)
        self.timed = timed
        self.peak: int | None = None
        self._one = make
        self._alive: list[Buffer] | None = None

    def at_peak(self) -> list[Buffer]:
        """The values alive at the peak."""
        if self._alive is None:
            self._alive = [self._one(n, True) for n, t in enumerate(self.timed) if self._is_alive(t.live)]
        return self._alive

    def counts(self) -> tuple[int, int]:
        """How many values are alive at the peak, and how many are known not to be."""
        alive = sum(self._is_alive(t.live) is True for t in self.timed)
        return alive, 0 if self.peak is None else sum(t.live is not None for t in self.timed) - alive

    def items(self) -> tuple[Buffer, ...]:
        """All of them."""
        if not self._items:
            self._items = tuple([self._one(n, self._is_alive(t.live)) for n, t in enumerate(self.timed)])
        return self._items

    def _is_alive(self, live: tuple[int, int] | None) -> bool | None:
        return None if live is None or self.peak is None else live[0] <= self.peak <= live[1]


def timed(buffers: Sequence[Buffer]) -> Iterable[Timed]:
    """Where and when ``buffers`` are."""
    if isinstance(buffers, HeapValues):
        return buffers.timed
    return [Timed(extent(b), b.live) for b in buffers]


def at_peak(buffers: Sequence[Buffer]) -> Sequence[Buffer]:
    """Those of ``buffers`` that are alive at the peak."""
    return buffers.at_peak() if isinstance(buffers, HeapValues) else [b for b in buffers if b.at_peak]


def knows_peak(buffers: Sequence[Buffer]) -> bool:
    """Whether any of ``buffers`` is known to be alive at the peak or not to be."""
    if isinstance(buffers, HeapValues):
        return buffers.peak is not None and any(t.live is not None for t in buffers.timed)
    return any(b.at_peak is not None for b in buffers)


def counts(buffers: Sequence[Buffer]) -> tuple[int, int]:
    """How many of ``buffers`` are alive at the peak, and how many are known not to be."""
    if isinstance(buffers, HeapValues):
        return buffers.counts()
    return sum(b.at_peak is True for b in buffers), sum(b.at_peak is False for b in buffers)


def extent(buffer: Buffer) -> Extent:
    """Where a buffer lies in its allocation, and how much of it is data."""
    return Extent(buffer.offset, int(buffer.bytes), data_in(buffer.shape, int(buffer.bytes)))


def data_in(shape: Shape | None, size: int) -> int:
    """How many of ``size`` bytes are data. A tuple's own buffer is a table of pointers: all of it is."""
    if shape is None:
        return size
    known = _data.get(id(shape))
    most = data_of(shape) if known is None else known[1]
    return size if shape.dtype == "tuple" or size < most else most


_data: dict[int, tuple[Shape, int]] = {}


def data_of(shape: Shape) -> int:
    """``shape.unpadded_bytes``, remembered: a program has tens of thousands of values of a few hundred shapes."""
    # By identity, which holds as long as the shape is kept here; to hash a shape takes as long as to count it.
    known = _data.get(id(shape))
    if known is None:
        if len(_data) > 10_000:
            _data.clear()
        known = _data[id(shape)] = shape, int(shape.unpadded_bytes)
    return known[1]
