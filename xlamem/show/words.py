"""The small phrases that several outputs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlamem.units import format_size

if TYPE_CHECKING:
    from xlamem.finding import Advice
    from xlamem.report import Allocation, MemoryReport


def size(n: int | None) -> str:
    """A size, or nothing where it is not known."""
    return "" if n is None else format_size(int(n))


def times(ratio: float | None) -> str:
    """A ratio as "2.0x", "1.33x", "512x", or nothing where it is not known."""
    if ratio is None:
        return ""
    if 1 < ratio < 1.005:
        return f"{ratio:.3f}x"
    digits = f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"
    return f"{digits}x" if "." in digits or len(digits) > 1 else f"{digits}.0x"


def percent(part: int, whole: int) -> str:
    """``part`` of ``whole`` as "25.6%"."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def count(n: int, one: str, many: str | None = None) -> str:
    """ "1 check", "3 checks"."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def ranked(report: MemoryReport) -> list[int]:
    """Positions in ``report.allocations``, the largest first. A rank, from 1, is what people see as "#1".

    Those in the memory space that the report is about come before those in others.
    """
    listed = report.allocations
    main = None if report.space is None else report.space.name
    return sorted(range(len(listed)), key=lambda i: (listed[i].space != main, -listed[i].bytes))


def holder(allocation: Allocation) -> str:
    """Who the bytes belong to, as near to the user's program as is known."""
    return allocation.op_name or allocation.name or allocation.opcode or allocation.label or ""


def place(allocation: Allocation) -> str:
    """The line of the user's program: "train.py:12"."""
    if allocation.source_file is None:
        return ""
    if allocation.source_line is None:
        return allocation.source_file
    return f"{allocation.source_file}:{allocation.source_line}"


def standing(advice: Advice) -> str:
    """What is gained, and how sure that is, in one line."""
    parts = []
    if advice.before is not None and advice.after is not None and advice.saved:
        change = f"{size(advice.before)} -> {size(advice.after)}"
        verb = "saves" if advice.saved > 0 else "costs"
        parts.append(f"{change}, {verb} {size(abs(advice.saved))}")
    if advice.verified:
        parts.append("measured by compiling it")
    elif advice.provenance == "estimated":
        parts.append("estimated, not compiled")
    else:
        parts.append("computed, not compiled")
    if advice.safe is False:
        parts.append("changes the values computed")
    if advice.value_error:
        parts.append(f"values differ by up to {advice.value_error:.1e}")
    return "; ".join(parts)


#: How figures are called by where they come from.
AS_KNOWN = {
    "reported": "as reported",
    "computed": "as computed",
    "compiled": "as compiled",
    "estimated": "as estimated",
}


def listed(report: MemoryReport) -> str:
    """What the list of allocations is: all of them, or only the largest."""
    if report.timelines and not report.partial:
        main = "" if report.space is None else report.space.name
        here = len(report.in_space(main))
        others = len(report.allocations) - here
        text = f"{count(here, 'value or allocation', 'values and allocations')} alive at the peak"
        return f"{text}, then {others} in other memory spaces at theirs" if others else text
    if report.partial:
        text = f"the {len(report.allocations)} that the report lists; sums over them are lower bounds"
        exact = sum(allocation.provenance == "computed" for allocation in report.allocations)
        return f"{text}; {exact} sizes computed to the byte from the shapes" if exact else text
    return count(len(report.allocations), "allocation")
