"""Buffer assignment and live ranges as read, before they become a report.

Both forms of a dump, text and proto, become these; :mod:`xlamem.readers.assignment_report` makes the report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from xlamem.shape import Shape

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


@dataclass(frozen=True, slots=True)
class AssignedAllocation:
    """One allocation of a buffer assignment. ``parameter`` is the number of the entry parameter in it."""

    index: int
    bytes: int
    color: int = 0
    parameter: int | None = None
    parameter_index: tuple[int, ...] = ()
    constant: bool = False
    thread_local: bool = False
    live_out: bool = False
    values: tuple[Value, ...] = ()
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
