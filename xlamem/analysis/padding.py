"""How many bytes are tile padding, and what would be needed without any."""

from __future__ import annotations

from xlamem.finding import Padding
from xlamem.report import Allocation, MemoryReport, Provenance, Space
from xlamem.units import slack_of

#: Kinds of allocations that TPU reports leave out of their totals of padding.
_AROUND = ("argument", "output", "alias")


def total_padding(report: MemoryReport) -> Padding | None:
    """The padding of everything in the report's main memory space, None where nothing tells.

    The temporaries' comes from the report's own ``Unpadded``/``Padded`` where it has them, from its
    utilization (2019 reports: known to 0.05 %) where not, from the items otherwise. TPU reports leave
    arguments and outputs out of those totals, so theirs is added from the shapes.
    """
    space = report.space
    if space is None:
        return None
    listed = report.in_space(space.name)
    around = sum(_padding_of(a) for a in listed if a.kind in _AROUND)
    temps = _temps_padding(space, _of_totals(report))
    if temps is not None:
        return Padding(temps.bytes + around, temps.provenance, temps.lower_bound)
    known = [a for a in listed if a.padding_bytes is not None]
    if not known:
        return None
    computed = any(a.provenance == "computed" for a in known)
    return Padding(
        sum(_padding_of(a) for a in known), "computed" if computed else known[0].provenance, report.partial
    )


def needed_without_padding(report: MemoryReport) -> Padding | None:
    """The bytes that would be used if no temporary, argument or output had padding.

    ``used - temps + unpadded``: this leaves out the fragmentation of the temporaries too, so it is a
    lower bound of what any layout could reach.
    """
    space = report.space
    if space is None or space.used is None:
        return None
    around = sum(_padding_of(a) for a in report.in_space(space.name) if a.kind in _AROUND)
    temps = _temps_padding(space, _of_totals(report))
    if temps is None:
        padding = total_padding(report)
        if padding is None:
            return None
        return Padding(int(space.used) - padding.bytes, padding.provenance, False)
    if space.temps is not None and space.unpadded is not None:
        return Padding(
            int(space.used) - int(space.temps) + int(space.unpadded) - around, _of_totals(report), True
        )
    fragmentation = int(space.fragmentation or 0)
    return Padding(int(space.used) - temps.bytes - fragmentation - around, temps.provenance, True)


def is_padded(allocation: Allocation) -> bool:
    """Whether the allocation's padding is more than the printed figures' rounding can explain."""
    padding = allocation.padding_bytes
    if not padding or padding < 0:
        return False
    return padding > slack_of(allocation.bytes) + slack_of(allocation.unpadded_bytes)


def _padding_of(allocation: Allocation) -> int:
    return max(0, allocation.padding_bytes or 0)


def _of_totals(report: MemoryReport) -> Provenance:
    """Where the totals of the temporaries come from: of a dump they are added up from shapes and layouts."""
    return "computed" if report.provenance == "compiled" else report.provenance


def _temps_padding(space: Space, provenance: Provenance) -> Padding | None:
    if space.padding is not None:
        return Padding(space.padding, provenance, False)
    if space.utilization is not None and space.temps is not None:
        padded = int(space.temps) - int(space.fragmentation or 0)
        return Padding(round(padded * (100 - space.utilization) / 100), "estimated", False)
    return None
