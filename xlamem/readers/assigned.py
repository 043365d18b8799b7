"""Buffer assignment and live ranges as read, before they become a report.

Both forms of a dump, text and proto, become these; :mod:`xlamem.readers.assignment_report` makes the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xlamem.shape import Shape

#: Whose result, and which part of it.
Place = tuple[str, tuple[int, ...]]

#: What XLA's memory colours are called: ``color=n`` of an allocation, ``S(n)`` of a layout.
SPACE_NAMES = {0: "hbm", 1: "vmem", 2: "smem", 3: "cmem", 5: "host"}


def space_name(color: int, backend: str | None = None) -> str:
    """The memory space of a colour: 0 is the device's own, "hbm", but "host" on a CPU; 6 has no name."""
    if color == 0 and backend == "cpu":
        return "host"
    return SPACE_NAMES.get(color, f"color_{color}")


def memory_word(space: str) -> str:
    """A memory space in a sentence: "HBM", "VMEM", "host memory"."""
    return "host memory" if space == "host" else space.upper()


class Value(NamedTuple):
    """A value in an allocation: ``name`` and ``shape_index`` say whose result it is.

    ``phi`` values are a loop's view of what was put into it: same bytes, no instruction of its own. A tuple,
    because a program has tens of thousands of them.
    """

    name: str
    shape_index: tuple[int, ...]
    bytes: int
    offset: int
    shape: Shape | None = None
    phi: bool = False


class Columns(NamedTuple):
    """The values of all allocations, one after the other, as columns."""

    places: Sequence[Place]
    sizes: Sequence[int]
    offsets: Sequence[int]
    shapes: Sequence[Shape | None]

    def values(self, start: int, end: int) -> tuple[Value, ...]:
        """Some of them as values."""
        rows = zip(*(column[start:end] for column in self), strict=True)
        return tuple([Value(name, index, size, offset, shape) for (name, index), size, offset, shape in rows])


class AssignedAllocation(NamedTuple):
    """One allocation of a buffer assignment. ``parameter`` is the number of the entry parameter in it."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    bytes: int
    color: int = 0
    parameter: int | None = None
    parameter_index: tuple[int, ...] = ()
    constant: bool = False
    thread_local: bool = False
    live_out: bool = False
    values: Sequence[Value] = ()
    #: The 1-based line of the text.
    line: int | None = None

    @property
    def kind(self) -> str:
        """The word of :class:`xlamem.report.Allocation` for it; "alias" is a donated argument's memory."""
        if self.parameter is not None:
            return "alias" if self.live_out else "argument"
        if self.constant:
            return "constant"
        if self.thread_local:
            return "thread-local"
        return "output" if self.live_out else "temp"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A buffer assignment. ``notes`` say what could not be read."""

    allocations: tuple[AssignedAllocation, ...]
    notes: tuple[str, ...] = ()
    truncated: bool = False
    #: The values, from a reader that has them as columns.
    columns: Columns | None = None

    def as_columns(self) -> Columns:
        """All values, those of the first allocation first."""
        if self.columns is not None:
            return self.columns
        values = [value for a in self.allocations for value in a.values]
        return Columns(
            [(value.name, value.shape_index) for value in values],
            [value.bytes for value in values],
            [value.offset for value in values],
            [value.shape for value in values],
        )


@dataclass(frozen=True, slots=True)
class LiveRanges:
    """When each value is needed: positions in ``sequence``, first and last included.

    ``ranges`` is keyed by (instruction, index). ``exact`` is False where the ends are only known up to the
    next allocation (heap simulator traces).
    """

    sequence: tuple[str, ...]
    ranges: dict[tuple[str, tuple[int, ...]], tuple[int, int]]
    exact: bool = True
    notes: tuple[str, ...] = ()
    truncated: bool = False
