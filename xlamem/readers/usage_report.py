"""``*-memory-usage-report.txt``, and the same block in a log after "Memory usage report:".

Today's form, one table for each allocation of a memory space (those without values are not printed)::

    Memory Space: default (color=0)
    Total bytes: 38863540736 (36.19GiB)
      cumulative_size;       size;       offset; used_by_n_values; shapes_list
      ------------------------------------------------------------
        1.95GiB(  5%);    1.95GiB;   4194926592;                1; f32[524288,1000]

The form of 2024 lists the allocations instead::

    Total bytes used: 21474853888 (20.00GiB)
       2.00GiB( 10%);   18.00GiB; allocation 1: size 2.00GiB, parameter 0, shape |f32[8,3]| at ShapeIndex {}:

Shapes come without layouts and the shapes of a row take turns, so padding is not known from this alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from xlamem.readers.assigned import SPACE_NAMES, space_name
from xlamem.readers.assignment_report import Facts
from xlamem.readers.hlo_module import shape_of
from xlamem.report import Allocation, Backend, MemoryReport, Space, Unparsed
from xlamem.shape import Shape
from xlamem.units import Size, format_size, size_from

_SPACE = re.compile(r"Memory Space: (\S+) \(color=(\d+)\)")
_TOTAL = re.compile(r"Total bytes(?: used)?: (\d+)(?: \([\d.]+ ?[KMGTP]?i?B\))?")
_SIZE = r"([\d.]+) ?([KMGTPE]?)i?B"
_ROW = re.compile(rf"{_SIZE}\( *\d+%\); *{_SIZE}; *(\d+); *(\d+); (.+)")
_OLD_ROW = re.compile(rf"{_SIZE}\( *\d+%\); *{_SIZE}; allocation (\d+): size {_SIZE}(.*):?")
_REST = re.compile(r"The rest (\d+) values")
_TIMES = re.compile(r"\d+×")
_IGNORED = ("cumulative_size;", "-----", "Allocations sorted by size", "allocation ", "BufferAssignment")
_HEAD = re.compile(
    r"Memory Space: \S+ \(color=\d+\)\s+Total bytes: \d+"
    r"|Total bytes used: \d+ \([^)]{0,40}\)\s+Allocations sorted by size"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A row of a usage report: the values that take turns at one offset. ``line`` counts from 1."""

    space: str
    bytes: Size
    offset: int | None
    values: int
    shapes: tuple[Shape, ...]
    table: int
    line: int
    kind: str = "other"


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A usage report: total bytes of each memory space, exact, and the rows. ``old`` is the form of 2024.

    ``start`` and ``end`` are the first and the last line of it in the text, from 1.
    """

    totals: dict[str, int]
    slots: tuple[Slot, ...]
    old: bool
    start: int
    end: int
    omitted: int = 0
    unparsed: tuple[Unparsed, ...] = ()


def sniff(name: str, head: bytes) -> bool:
    """Whether a file with these first bytes is a usage report."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").decode("utf-8", errors="replace")
    return _HEAD.match(text) is not None


def parse(text: str) -> UsageReport | None:
    """The usage report in ``text``, which may stand among other lines of a log; None if there is none.

    Log prefixes must have been stripped. The report ends at the first line that belongs to something else.
    """
    start = _HEAD.search(text)
    return None if start is None else parse_at(text, start.start(), text.count("\n", 0, start.start()) + 1)


def parse_at(text: str, start: int, first: int) -> UsageReport:
    """The usage report that begins at ``start`` in ``text``; its first line is to count as ``first``."""
    reader = _Reader(first)
    number = first
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not reader.line(number, text[start:end].strip()):
            break
        start = end + 1
        number += 1
    return reader.finish()


class _Reader:
    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.space = "hbm"
        self.totals: dict[str, int] = {}
        self.slots: list[Slot] = []
        self.table = -1
        self.old = False
        self.omitted = 0
        self.unparsed: list[Unparsed] = []

    def line(self, number: int, line: str) -> bool:
        """Take one line; False if the report is over."""
        if not line:
            return True
        if (space := _SPACE.fullmatch(line)) is not None:
            self.space = space_name(int(space[2]))
            if space[2] != "0" and int(space[2]) not in SPACE_NAMES:
                self.space = space[1]
            if self.space in self.totals:
                return False
        elif (total := _TOTAL.match(line)) is not None:
            if self.space in self.totals:
                return False
            self.totals[self.space] = int(total[1])
            self.old = line.startswith("Total bytes used")
        elif line.startswith("cumulative_size;"):
            self.table += 1
        elif (row := _ROW.fullmatch(line)) is not None:
            if not self.old:
                self._slot(number, row)
        elif self.old and (old := _OLD_ROW.match(line)) is not None:
            self._allocation(number, old)
        elif (rest := _REST.match(line)) is not None:
            self.omitted += int(rest[1])
        elif not line.startswith(_IGNORED):
            # A cut row still looks like one; anything else is the log going on.
            if not re.match(r"[\d.]+ ?[KMGTPE]?i?B\(", line):
                return False
            self.unparsed.append(Unparsed(number, line))
        self.end = number
        return True

    def _slot(self, number: int, row: re.Match[str]) -> None:
        _, _, size, unit, offset, values, shapes = row.groups()
        self.slots.append(
            Slot(
                self.space,
                size_from(size, unit),
                int(offset),
                int(values),
                _shapes(shapes),
                self.table,
                number,
            )
        )

    def _allocation(self, number: int, row: re.Match[str]) -> None:
        _, _, _, _, index, size, unit, words = row.groups()
        color = re.match(r", color (\d+)", words)
        shape = re.search(r"\|(.*?)\|", words)
        rest = re.sub(r"\|.*?\|", "", words)
        found = None if shape is None else shape_of(shape[1])
        self.slots.append(
            Slot(
                space_name(int(color[1])) if color is not None else "hbm",
                size_from(size, unit),
                None,
                1,
                () if found is None else (found,),
                int(index),
                number,
                _old_kind(rest),
            )
        )

    def finish(self) -> UsageReport:
        return UsageReport(
            self.totals, tuple(self.slots), self.old, self.start, self.end, self.omitted, tuple(self.unparsed)
        )


def _old_kind(words: str) -> str:
    if ", parameter " in words:
        return "alias" if ", maybe-live-out" in words else "argument"
    for word, kind in (
        ("thread-local", "thread-local"),
        ("constant", "constant"),
        ("maybe-live-out", "output"),
    ):
        if f", {word}" in words:
            return kind
    return "temp"


@lru_cache(maxsize=4096)
def _shapes(text: str) -> tuple[Shape, ...]:
    """The distinct shapes of a row: "bf16[8,3], 2×f32[8,3]". What is cut at the end is left out."""
    found = []
    depth = start = 0
    for at, char in enumerate(text + ","):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth <= 0:
            shape = shape_of(_TIMES.sub("", text[start:at].strip(), count=1))
            if shape is not None:
                found.append(shape)
            start = at + 1
    return tuple(found)


def to_report(usage: UsageReport, facts: Facts) -> MemoryReport:
    """The report of a usage report alone: exact totals, rows as printed, nothing about padding."""
    spaces: list[Space] = []
    for name, total in usage.totals.items():
        capacity = facts.capacity if not spaces else None
        over = None if capacity is None or total <= capacity else total - capacity
        # The form of 2024 has one total for all memory spaces.
        mixed = usage.old and any(slot.space != name for slot in usage.slots)
        kinds: dict[str, int | None] = {}
        if usage.old and not mixed:
            kinds = {
                "arguments": _sum(usage, "argument", "alias"),
                "outputs": _sum(usage, "output", "alias"),
                "temps": _sum(usage, "temp"),
            }
        shown = space_name(0, facts.backend) if name == "hbm" else name
        spaces.append(Space(shown, capacity=capacity, used=total, over=over, total=total, **kinds))
    fits = facts.fits
    if fits is None and spaces and spaces[0].capacity is not None:
        fits = spaces[0].over is None
    total = next(iter(usage.totals.values()), 0)
    notes = list(facts.notes)
    notes.append(
        "a usage report shows shapes without layouts: how much of each is padding is not known from it"
    )
    if usage.old:
        notes.append("the total counts every memory space together")
    if usage.omitted:
        notes.append(f"{usage.omitted} small values are not listed")
    return MemoryReport(
        kind="hbm" if fits is False else "success",
        severity="error" if fits is False else "info",
        source=facts.source,
        message=f"Total bytes{' used' if usage.old else ''}: {total} ({format_size(total)})",
        backend=facts.backend,
        target=facts.target,
        program=facts.program,
        fits=fits,
        provenance="compiled",
        spaces=tuple(spaces),
        allocations=tuple(_row(slot, facts.backend) for slot in usage.slots),
        partial=True,
        truncated=facts.truncated,
        notes=tuple(notes),
        unparsed=usage.unparsed,
    )


def _sum(usage: UsageReport, *kinds: str) -> int | None:
    found = [slot.bytes for slot in usage.slots if slot.kind in kinds]
    return sum(int(size) for size in found) if found and not any(size.slack for size in found) else None


def _row(slot: Slot, backend: Backend | None) -> Allocation:
    return Allocation(
        space=space_name(0, backend) if slot.space == "hbm" else slot.space,
        kind=slot.kind,
        bytes=slot.bytes,
        reported_bytes=slot.bytes,
        shape=slot.shapes[0] if len(slot.shapes) == 1 else None,
        label=None if len(slot.shapes) < 2 else ", ".join(str(shape) for shape in slot.shapes[:4]),
        provenance="reported",
        line=slot.line,
    )
