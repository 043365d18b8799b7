"""One failure of a BFC allocator, from what the text said of it to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from xlamem.readers.allocator_stats import AllocatorStats
from xlamem.readers.lines import Lines
from xlamem.readers.sentence import sentence, source
from xlamem.report import Allocation, Kind, MemoryReport, Severity, Space
from xlamem.units import Size, format_size, slack_of


@dataclass
class BfcFailure:
    """What the text says of one failure of one allocator; ``seen`` names the parts of it that were there.

    ``groups`` holds the number of chunks, the size of each, the printed sum and the line. ``certain`` is
    whether the line went on in a way that only a failure's does.
    """

    start: int
    end: int
    allocator: str | None = None
    message: str = ""
    op: str | None = None
    asked: Size | None = None
    rounded: Size | None = None
    benign: bool = False
    certain: bool = True
    seen: set[str] = field(default_factory=set)
    in_use: Counter[int] = field(default_factory=Counter)
    free: list[Size] = field(default_factory=list)
    groups: list[tuple[int, Size, Size, int]] = field(default_factory=list)
    total: Size | None = None
    pool: Size | None = None
    limit: Size | None = None
    available: Size | None = None
    stats: AllocatorStats = field(default_factory=AllocatorStats)


def build(failure: BfcFailure, lines: Lines, name: str) -> MemoryReport:
    """The report about ``failure``, read from the input called ``name``."""
    listed = bool(failure.seen - {"ranout"})
    allocator = (failure.allocator or "").lower()
    host = "host" in allocator or allocator in ("cpu", "mklcpu", "mkl_cpu")
    space = _space(failure, "host" if host else "hbm")
    fragmented = not failure.benign and _is_fragmented(failure, space)
    kind: Kind = "host" if host else "runtime-alloc"
    # A line that broke off before it said whether it is a failure may be either.
    failed = not failure.benign and (listed or failure.certain)
    severity: Severity = "info" if failure.benign else "error" if failed else "warning"
    return MemoryReport(
        kind="benign" if failure.benign else "fragmentation" if fragmented else kind,
        severity=severity,
        source=source(lines, name, "bfc-dump" if listed else "bfc", failure.start, failure.end),
        message=failure.message or _first_line(failure, lines),
        backend="cpu" if host and "gpu" not in allocator else "gpu",
        fits=False if failed else None,
        spaces=(space,),
        allocations=tuple(_allocations(failure, space.name)),
        partial=not _adds_up(failure),
        truncated=not failed and not failure.benign,
        notes=tuple(_notes(failure, space, fragmented)),
    )


def _first_line(failure: BfcFailure, lines: Lines) -> str:
    end = lines.text.find("\n", failure.start)
    return sentence(lines.text, failure.start, failure.end if end < 0 else end)


def _space(failure: BfcFailure, name: str) -> Space:
    stats = failure.stats
    largest = stats.largest_free
    if largest is None and failure.free and failure.seen & {"group", "sum"}:
        largest = max(failure.free)  # the list of chunks is whole
    return Space(
        name=name,
        capacity=stats.limit if stats.limit is not None else failure.limit or None,
        used=stats.in_use if stats.in_use is not None else failure.total,
        requested=failure.asked,
        largest_free=largest,
        reservable=failure.available,
        reserved=failure.pool if failure.pool is not None else stats.reserved,
        peak=stats.peak,
    )


def _is_fragmented(failure: BfcFailure, space: Space) -> bool:
    """Whether there was enough free memory in all, and no piece of it was large enough."""
    asked = failure.rounded if failure.rounded is not None else failure.asked
    if asked is None or space.largest_free is None:
        return False
    free: int
    if failure.free:
        free = sum(map(int, failure.free))
    elif space.used is None or (failure.pool is None and space.capacity is None):
        return False
    else:
        free = int(failure.pool if failure.pool is not None else space.capacity or 0) - int(space.used)
    return free >= int(asked) > int(space.largest_free)


def _adds_up(failure: BfcFailure) -> bool:
    if failure.total is None or not failure.groups:
        return False
    known = sum(count * int(each) for count, each, _, _ in failure.groups)
    slack = sum(count * each.slack for count, each, _, _ in failure.groups)
    return abs(known - int(failure.total)) <= 2 * failure.total.slack + slack


def _allocations(failure: BfcFailure, space: str) -> Iterator[Allocation]:
    """Chunks of one size are one allocation: the allocator knows sizes and no owners."""
    for count, each, together, line in failure.groups:
        exact = count * int(each)
        agrees = not each.slack and together.agrees_with(exact)
        yield Allocation(
            space=space,
            kind="other",
            bytes=exact if agrees else together,
            reported_bytes=together,
            label=_chunks(count, each),
            provenance="computed" if agrees else "reported",
            line=line,
        )
    if failure.groups:
        return
    for size in sorted(failure.in_use, reverse=True):
        count = failure.in_use[size]
        yield Allocation(
            space=space, kind="other", bytes=count * size, label=_chunks(count, size), provenance="computed"
        )


def _chunks(count: int, size: int) -> str:
    """ "3 chunks of 512 bytes", or of "1.50GiB" where the text is no more exact."""
    return f"{count} chunk{'s' if count != 1 else ''} of {_shown(size)}"


def _shown(size: int) -> str:
    return format_size(size) if slack_of(size) else f"{int(size)} bytes"


def _notes(failure: BfcFailure, space: Space, fragmented: bool) -> Iterator[str]:
    if failure.allocator:
        yield f"Allocator {failure.allocator}."
    if failure.op:
        yield f"Requested by op {failure.op}."
    if failure.rounded is not None and not failure.rounded.slack:
        yield f"The allocator rounds it up to {int(failure.rounded)} bytes."
    asked = failure.rounded if failure.rounded is not None else failure.asked
    if asked and space.reservable is not None and int(space.reservable) >= int(asked):
        yield (
            "The allocator was still allowed to grow by more than this, and the device did not give it: "
            "something else holds that memory."
        )
    elif fragmented:
        yield "There was enough free memory in all, and no free piece was large enough."
    if failure.total is not None and failure.groups and not _adds_up(failure):
        yield (
            "The chunks listed do not add up to the sum printed below them: lines are missing, or the dumps "
            "of several allocators are mixed."
        )
