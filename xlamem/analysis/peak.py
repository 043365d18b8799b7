"""The peak of a program: where it is, what is alive there, whose it is, and how much of it is padding."""

from __future__ import annotations

from collections.abc import Sequence

from xlamem.analysis import copies, ownership
from xlamem.analysis.heap import counts
from xlamem.analysis.timeline import alive_at_peak, is_heap, main_space
from xlamem.finding import Peak
from xlamem.lazy import Lazy
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
        others=others,
        owners=ownership.by_owner(rows, name),
        scopes=ownership.by_scope(rows, name),
        sources=ownership.by_source(rows, name),
        axes=copies.padded_axes(rows),
        copies=copies.copies_at_peak(report),
        provenance=report.provenance,
    )


def _values(allocations: tuple[Allocation, ...]) -> tuple[int, Sequence[Buffer]]:
    """How many temporary values are alive at the peak, and those that are not, the largest first."""
    temps = [a for a in allocations if a.kind == "temp"]
    alive = others = 0
    for a in temps:
        here, elsewhere = counts(a.buffers) if is_heap(a) else (a.at_peak is True, a.at_peak is False)
        alive, others = alive + here, others + elsewhere
    return alive, Lazy(others, lambda: _others(temps))


def _others(temps: list[Allocation]) -> tuple[Buffer, ...]:
    found: list[Buffer] = []
    for a in temps:
        if is_heap(a):
            found += [value for value in a.buffers if value.at_peak is False]
        elif a.at_peak is False:
            found.append(_value(a))
    return tuple(sorted(found, key=lambda value: -value.bytes))


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
