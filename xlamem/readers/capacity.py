"""A compiled or estimated program against a capacity: whether it fits, and how that is said."""

from __future__ import annotations

from dataclasses import replace

from xlamem.readers.assigned import memory_word
from xlamem.report import MemoryReport, Provenance, Space
from xlamem.units import format_size


def needs(program: str | None, main: Space, provenance: Provenance) -> str:
    """The sentence that a report of a program has in the place of the compiler's own message."""
    bound = " at most about" if provenance == "estimated" else ""
    text = (
        f"{program or 'The program'} needs{bound} {format_size(main.total or 0)} of {memory_word(main.name)}"
    )
    if provenance == "estimated":
        text += " (estimated from its HLO)"
    if main.capacity is not None:
        text += f"; {format_size(main.capacity)} can be used"
    return text


def fits_in(main: Space, provenance: Provenance) -> bool | None:
    """Whether what is used fits the capacity. An upper bound that is above it decides nothing."""
    if main.capacity is None or main.used is None:
        return None
    if int(main.used) <= int(main.capacity):
        return True
    return None if provenance == "estimated" else False


def with_capacity(report: MemoryReport, capacity: int) -> MemoryReport:
    """``report`` of a program, judged anew by another capacity of the device's memory than it had."""
    main = report.space
    if main is None or main.used is None:
        return report
    over = int(main.used) - capacity
    main = replace(main, capacity=capacity, over=over if over > 0 else None)
    fits = fits_in(main, report.provenance)
    return replace(
        report,
        kind="hbm" if fits is False else "success",
        severity="error" if fits is False else "info",
        fits=fits,
        message=needs(report.program, main, report.provenance),
        spaces=(main, *report.spaces[1:]),
    )
