"""The values of a heap, known by place and time at once and by name only when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from xlamem.analysis.occupancy import Extent
from xlamem.lazy import Lazy
from xlamem.report import Buffer
from xlamem.shape import Shape

Span = tuple[int, int] | None
#: Where a value lies and when it is needed: first and last position; None if that is not known.
Timed = tuple[Extent, Span]


class HeapValues(Lazy[Buffer]):
    """The values of one allocation, numbers ``start`` to ``end`` of many.

    ``extents`` and ``spans`` of all of them say where and when, ``make`` the rest of the one with a number. A
    program has tens of thousands of values, and few of them are alive at its peak. ``peak`` is its position:
    what is alive there has ``at_peak`` set; None leaves it open.
    """

    __slots__ = ("_alive", "_end", "_extents", "_one", "_spans", "_start", "peak")

    def __init__(
        self,
        extents: Sequence[Extent],
        spans: Sequence[Span],
        start: int,
        end: int,
        make: Callable[[int, bool | None], Buffer],
    ) -> None:
        self._length = end - start
        self._items = ()
        self._extents, self._spans, self._start, self._end = extents, spans, start, end
        self.peak: int | None = None
        self._one = make
        self._alive: list[Buffer] | None = None

    def timed(self) -> Iterable[Timed]:
        """Where and when they are."""
        return zip(self._extents[self._start : self._end], self.spans(), strict=True)

    def spans(self) -> Sequence[Span]:
        """When they are needed."""
        return self._spans[self._start : self._end]

    def at_peak(self) -> list[Buffer]:
        """The values alive at the peak."""
        if self._alive is None:
            alive = [n for n, span in enumerate(self.spans(), self._start) if self._is_alive(span)]
            self._alive = [self._one(n, True) for n in alive]
        return self._alive

    def counts(self) -> tuple[int, int]:
        """How many values are alive at the peak, and how many are known not to be."""
        if self.peak is None:
            return 0, 0
        alive = sum(self._is_alive(span) is True for span in self.spans())
        return alive, sum(span is not None for span in self.spans()) - alive

    def items(self) -> tuple[Buffer, ...]:
        """All of them."""
        if not self._items:
            spans = enumerate(self.spans(), self._start)
            self._items = tuple([self._one(n, self._is_alive(span)) for n, span in spans])
        return self._items

    def _is_alive(self, span: Span) -> bool | None:
        return None if span is None or self.peak is None else span[0] <= self.peak <= span[1]


def timed(buffers: Sequence[Buffer]) -> Iterable[Timed]:
    """Where and when ``buffers`` are."""
    if isinstance(buffers, HeapValues):
        return buffers.timed()
    return [(extent(b), b.live) for b in buffers]


def at_peak(buffers: Sequence[Buffer]) -> Sequence[Buffer]:
    """Those of ``buffers`` that are alive at the peak."""
    return buffers.at_peak() if isinstance(buffers, HeapValues) else [b for b in buffers if b.at_peak]


def knows_peak(buffers: Sequence[Buffer]) -> bool:
    """Whether any of ``buffers`` is known to be alive at the peak or not to be."""
    if isinstance(buffers, HeapValues):
        return buffers.peak is not None and any(span is not None for span in buffers.spans())
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
    return size if shape is None or shape.is_tuple else min(size, data_of(shape))


def extents(offsets: Sequence[int], sizes: Sequence[int], shapes: Sequence[Shape | None]) -> list[Extent]:
    """The extents of many values."""
    most: dict[int, int] = {}
    for shape in {id(shape): shape for shape in shapes}.values():
        most[id(shape)] = _NO_LIMIT if shape is None or shape.is_tuple else data_of(shape)
    data = map(min, sizes, map(most.__getitem__, map(id, shapes)))
    # A third of the time of Extent(...), which is a function in Python.
    return list(map(partial(tuple.__new__, Extent), zip(offsets, sizes, data, strict=True)))


_NO_LIMIT = 1 << 80
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
