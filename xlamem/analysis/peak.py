"""The peak of a program: where it is, what is alive there, whose it is, and how much of it is padding."""

from __future__ import annotations

from xlamem.analysis import copies, ownership
from xlamem.analysis.timeline import alive_at_peak, is_heap, main_space
from xlamem.finding import Peak
from xlamem.report import Allocation, Buffer, MemoryReport


def peak(report: MemoryReport) -> Peak | None:
    """The peak of the memory space that ``report`` is about; None without a timeline of it.

    ``report`` must be as it was read, its heaps with all their values.
    """
    name = main_space(report)
    found = next((t for t in report.timelines if t.space == name), None)
    if found is None:
        return None
    at = found.peak_at
    rows = alive_at_peak(report, name)
    alive, others = _values(report.in_space(name))
    return Peak(
        space=name,
        position=at,
        steps=len(found.instructions),
        instruction=found.instructions[at],
        op_name=found.op_names[at] if found.op_names else None,
        source_file=found.source_file,
        source_line=found.source_line,
        live=found.live[at],
        unpadded=found.unpadded[at],
        fragmentation=None if report.space is None else report.space.fragmentation,
        alive=alive,
        others=tuple(sorted(others, key=lambda value: -value.bytes)),
        owners=ownership.by_owner(rows, name),
        scopes=ownership.by_scope(rows, name),
        sources=ownership.by_source(rows, name),
        axes=copies.padded_axes(rows),
        copies=copies.copies_at_peak(report),
        provenance=report.provenance,
    )


def _values(allocations: tuple[Allocation, ...]) -> tuple[int, list[Buffer]]:
    """How many temporary values are alive at the peak, and those that are not."""
    alive = 0
    others: list[Buffer] = []
    for allocation in allocations:
        if is_heap(allocation):
            alive += sum(value.at_peak is True for value in allocation.buffers)
            others += [value for value in allocation.buffers if value.at_peak is False]
        elif allocation.kind == "temp":
            alive += allocation.at_peak is True
            others += [_value(allocation)] if allocation.at_peak is False else []
    return alive, others


def _value(a: Allocation) -> Buffer:
    """A temporary that is listed as an allocation of its own, as those of a module alone are."""
    name = a.name or a.label or a.kind
    return Buffer(
        name,
        int(a.bytes),
        0,
        a.shape,
        (),
        a.opcode,
        a.op_name,
        a.source_file,
        a.source_line,
        a.owner,
        a.live,
        False,
    )
