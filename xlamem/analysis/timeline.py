"""Live bytes over program order, and what is alive at the peak.

At each position of the program: everything that is not temporary (arguments, outputs, constants: held for the
whole run) plus the union of the byte ranges of the temporary values needed there. The heap of temporaries can
be larger than its own peak: what no arrangement of the values could fill is fragmentation, and it is the heap
that must fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import add

from xlamem.analysis.heap import HeapValues, at_peak, extent, knows_peak, timed
from xlamem.analysis.occupancy import Extent, Occupancy, representatives
from xlamem.report import Allocation, Buffer, MemoryReport, Space, Timeline


def timeline(
    space: str, allocations: Sequence[Allocation], steps: Sequence[tuple[str, str | None]]
) -> Timeline | None:
    """The timeline of one memory space; None without a program order or live ranges.

    ``steps`` are the instructions in program order, each with its op_name.
    """
    here = [a for a in allocations if a.space == space]
    temps = [a for a in here if is_heap(a)]
    if not steps or not here or not all(any(span for _, span in timed(a.buffers)) for a in temps if a.bytes):
        return None
    others = [a for a in here if not is_heap(a)]
    live = [sum(int(a.bytes) for a in others)] * len(steps)
    unpadded = [sum(_unpadded(a) for a in others)] * len(steps)
    for allocation in temps:
        now, data = _profile(allocation.buffers, len(steps))
        live = list(map(add, live, now))
        unpadded = list(map(add, unpadded, data))
    names, op_names = zip(*steps, strict=True)
    return Timeline(
        space=space,
        live=tuple(live),
        unpadded=tuple(unpadded),
        instructions=names,
        peak_at=live.index(max(live)),
        op_names=op_names,
    )


def is_heap(allocation: Allocation) -> bool:
    """Whether an allocation is a heap whose values come and go: XLA's preallocated temp."""
    return allocation.kind == "temp" and bool(allocation.buffers)


def _unpadded(allocation: Allocation) -> int:
    return int(allocation.bytes if allocation.unpadded_bytes is None else allocation.unpadded_bytes)


def _profile(buffers: Sequence[Buffer], length: int) -> tuple[list[int], list[int]]:
    """Bytes in use and bytes of data at each of ``length`` positions."""
    coming: dict[int, list[Extent]] = {}
    going: dict[int, list[Extent]] = {}
    for item, span in timed(buffers):
        if span is None or span[0] >= length:
            continue
        first, last = span
        start = max(0, first)
        # A value is still there at the position of its last use.
        end = max(start, last) + 1
        if start in coming:
            coming[start].append(item)
        else:
            coming[start] = [item]
        if end in going:
            going[end].append(item)
        else:
            going[end] = [item]
    occupancy = Occupancy()
    add, remove = occupancy.add, occupancy.remove
    live: list[int] = []
    unpadded: list[int] = []
    for position in sorted({*coming, *going, length}):
        if position > length:
            break
        live += [occupancy.live] * (position - len(live))
        unpadded += [occupancy.unpadded] * (position - len(unpadded))
        for item in going.get(position, ()):
            remove(item)
        for item in coming.get(position, ()):
            add(item)
    return live, unpadded


def set_peak(allocation: Allocation, found: Timeline) -> None:
    """Put on ``allocation`` that it is alive at the peak, and of a heap how much is padding there.

    In place, for the reader that has just made it: to copy thousands of allocations takes as long as to make them.
    """
    put = object.__setattr__
    # Held for the whole run, whichever value is in it at the moment.
    put(allocation, "at_peak", True)
    if isinstance(allocation.buffers, HeapValues):
        allocation.buffers.peak = found.peak_at
    if is_heap(allocation):
        at = found.peak_at
        alive = [e for e, span in timed(allocation.buffers) if span and span[0] <= at <= span[1]]
        padding = sum(e.bytes - e.unpadded for e in representatives(alive))
        put(allocation, "unpadded_bytes", int(allocation.bytes) - padding)


def with_totals(space: Space, allocations: Sequence[Allocation], found: Timeline | None) -> Space:
    """``space`` with its peak, and what is padding and fragmentation of its temporaries there."""
    if found is None:
        return space
    here = [a for a in allocations if a.space == space.name and a.kind != "temp"]
    held = sum(int(a.bytes) for a in here)
    padded = found.live[found.peak_at] - held
    temps = space.temps or 0
    return replace(
        space,
        peak=found.live[found.peak_at],
        padded=padded,
        unpadded=found.unpadded[found.peak_at] - sum(_unpadded(a) for a in here),
        fragmentation=temps - padded,
    )


def alive_at_peak(report: MemoryReport, space: str | None = None) -> tuple[Allocation, ...]:
    """What is alive at the peak, largest first: a row for each value of a heap and for each other allocation.

    Values that share bytes are represented by the largest of them, so the rows add up to the peak. (Those
    that overlap in part only are left out; there are none in the dumps seen.) Without a timeline, the
    allocations as they are. ``space`` is the report's own unless another is asked for.
    """
    rows: list[Allocation] = []
    for allocation in report.in_space(space or main_space(report)):
        if allocation.at_peak is not False:
            rows += _rows(allocation)
    return tuple(sorted(rows, key=lambda a: -int(a.bytes)))


def expanded(report: MemoryReport) -> MemoryReport:
    """``report`` with what is alive at the peak alone, values in the place of each heap: what people want listed.

    The rows of temporaries then add up to ``padded``: fragmentation is nobody's. What takes no bytes is left
    out. Heaps without a timeline, and reports without heaps, stay as they are.
    """
    if not any(is_heap(a) or a.at_peak is False for a in report.allocations):
        return report
    alive = [row for a in report.allocations if a.at_peak is not False for row in _rows(a)]
    return replace(report, allocations=tuple([row for row in alive if row.bytes]))


def _rows(allocation: Allocation) -> list[Allocation]:
    """The values of a heap alive at the peak, one row for those that share bytes; else the allocation."""
    if not is_heap(allocation) or not knows_peak(allocation.buffers):
        return [allocation]
    at: dict[Extent, Buffer] = {}
    for buffer in at_peak(allocation.buffers):
        # Of several in the same bytes the first with a name of the user's says most.
        item = extent(buffer)
        if item not in at or (at[item].op_name is None and buffer.op_name is not None):
            at[item] = buffer
    return [as_allocation(at[item], allocation) for item in representatives(list(at)) if item.bytes]


def main_space(report: MemoryReport) -> str:
    """The name of the memory space that a report is about."""
    return "hbm" if report.space is None else report.space.name


def as_allocation(buffer: Buffer, heap: Allocation) -> Allocation:
    """A value of a heap as a row of its own."""
    return Allocation(
        space=heap.space,
        kind=heap.kind,
        bytes=buffer.bytes,
        unpadded_bytes=extent(buffer).unpadded,
        shape=buffer.shape,
        name=buffer.name,
        opcode=buffer.opcode,
        op_name=buffer.op_name,
        source_file=buffer.source_file,
        source_line=buffer.source_line,
        owner=buffer.owner,
        live=buffer.live,
        at_peak=buffer.at_peak,
        provenance=heap.provenance,
        line=heap.line,
    )
