"""Many messages of one failure become one report, and the one that stopped the run comes first.

The compiler warns, writes a usage report and the failure to its own log, the exception says it in other words
or repeats it, and every host of a slice says the same. What differs in a figure that both have is another
failure.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import islice

from xlamem.report import Allocation, MemoryReport, Space
from xlamem.units import slack_of

_RANK = {"error": 0, "warning": 1, "info": 2}
_RUN_TIME = ("runtime-alloc", "program-load", "fragmentation")
_USAGE = "memory-usage-report"

#: What two tellings of one failure agree in, as far as both have it.
_FIGURES = (
    "used",
    "capacity",
    "over",
    "requested",
    "free",
    "largest_free",
    "reservable",
    "total",
    "program",
    "temps",
    "arguments",
    "outputs",
)

#: How many different reports back the same failure is looked for in other words or with other figures. One told in
#: the same words is found however long ago it was.
_BACK = 50

#: Within so many lines a message without figures repeats the failure before it.
_NEAR = 5


def merge(reports: list[MemoryReport]) -> list[MemoryReport]:
    """``reports``, in the order of the text, without repetitions; the last error first, then by severity.

    One that comes again counts as told where it was told last.
    """
    found: dict[int, MemoryReport] = {}
    exact: dict[object, int] = {}
    for number, report in enumerate(reports):
        key = _key(report)
        candidates = list(islice(reversed(found), _BACK))
        same = exact.get(key)
        if same in found and same not in candidates:
            candidates.append(same)
        for other in candidates:
            united = _united(found[other], report)
            if united is not None:
                del found[other]
                report = united
                break
        found[number] = report
        exact[key] = number
    kept = _with_warnings(list(found.values()))
    kept.sort(key=lambda report: _RANK[report.severity])
    errors = sum(report.severity == "error" for report in kept)
    if errors > 1:
        kept.insert(0, kept.pop(errors - 1))
    return kept


def _key(report: MemoryReport) -> object:
    """What a message told again has in common with its first telling."""
    return (report.source.format, report.kind, report.message, report.spaces, len(report.allocations))


def _united(earlier: MemoryReport, later: MemoryReport) -> MemoryReport | None:
    """Both as one report if they tell the same failure, otherwise None."""
    if earlier.program and later.program and earlier.program != later.program:
        return None
    if later.source.format == "memory-stats" and earlier.backend == "tpu":
        # What jax returns after libtpu said more about the same compile.
        return earlier if _agree(earlier, later, ("arguments", "outputs")) else None
    if earlier.backend != later.backend:
        return None
    if earlier.source.format == later.source.format and earlier.kind == later.kind:
        if _same(earlier, later):
            fuller = max((earlier, later), key=lambda r: (len(r.allocations), not r.truncated))
            return _joined(fuller, earlier, later, earlier.times + later.times)
        if earlier.suppressed and _agree(earlier, later, ("capacity",)):
            # The compiler was told to go on, and says it again of what it made next: the last counts.
            return _joined(later, earlier, later, later.times)
    if later.kind in _RUN_TIME and later.kind == earlier.kind and _agree(earlier, later, ("requested",)):
        # Hosts and repeated attempts differ in what was free.
        return replace(
            _joined(later, earlier, later, earlier.times + later.times), notes=_ranges(earlier, later)
        )
    if later.kind == "other" and earlier.source.format == "tpu-runtime" and _follows(earlier, later):
        # The runtimes of 2020 added the program's totals.
        return _joined(_filled(earlier, later), earlier, later, earlier.times)
    if _in_other_words(earlier, later) or _is_echo(earlier, later):
        richer, other = sorted((earlier, later), key=_richness, reverse=True)
        return _joined(_filled(richer, other), earlier, later, max(earlier.times, later.times))
    return None


def _same(a: MemoryReport, b: MemoryReport) -> bool:
    """Whether two messages of one form tell the same; one of them may have been cut short."""
    common = 0
    for x in a.spaces:
        for y in b.spaces:
            if x.name != y.name:
                continue
            for name in _FIGURES:
                mine, other = getattr(x, name), getattr(y, name)
                if mine is None or other is None:
                    continue
                if mine != other:
                    return False
                common += 1
    pairs = list(zip(a.allocations, b.allocations, strict=False))
    # The last item of a report that was cut short may lack its later lines.
    whole = pairs[:-1] if a.truncated or b.truncated else pairs
    if any(_printed(mine) != _printed(other) for mine, other in whole):
        return False
    return bool(common or whole) or a.message == b.message


def _printed(allocation: Allocation) -> tuple[object, ...]:
    """What the text says of an allocation."""
    a = allocation
    return (a.reported_bytes, a.shape, a.label, a.name, a.tag)


def _in_other_words(a: MemoryReport, b: MemoryReport) -> bool:
    """Whether messages of two forms tell one failure: their figures agree within the printed digits."""
    if a.source.format == b.source.format:
        return False
    if a.backend == "gpu":
        return {a.kind, b.kind} <= {"hbm", *_RUN_TIME} and _agree(a, b, ("requested",))
    forms = {a.source.format, b.source.format}
    if not forms <= {"tpu-oom-report", "tpu-hbm-line", _USAGE}:
        return False
    if _USAGE in forms:
        return _agree(a, b, ("used",))
    return _agree(a, b, ("used", "capacity"))


def _is_echo(earlier: MemoryReport, later: MemoryReport) -> bool:
    """Whether ``later`` has no figure of its own and stands right behind a failure of the same backend."""
    if later.backend != "gpu" or not {earlier.kind, later.kind} <= {"hbm", *_RUN_TIME}:
        return False
    if any(value is not None for space in later.spaces for value in space.figures().values()):
        return False
    return _follows(earlier, later)


def _follows(earlier: MemoryReport, later: MemoryReport) -> bool:
    gap = (later.source.line or 0) - (earlier.source.end_line or 0)
    return earlier.source.name == later.source.name and 0 <= gap <= _NEAR


def _agree(a: MemoryReport, b: MemoryReport, names: tuple[str, ...]) -> bool:
    """Whether the main spaces have the figures ``names`` and agree in them."""
    if a.space is None or b.space is None or a.space.name != b.space.name:
        return False
    for name in names:
        mine, other = getattr(a.space, name), getattr(b.space, name)
        if mine is None or other is None:
            return False
        if abs(int(mine) - int(other)) > 2 * (slack_of(mine) + slack_of(other)):
            return False
    return True


def _richness(report: MemoryReport) -> tuple[bool, bool, int]:
    """Which of two reports says more: what failed, what is padded, how many allocations."""
    padded = any(a.unpadded_bytes is not None for a in report.allocations)
    return report.fits is False, padded, len(report.allocations)


def _filled(richer: MemoryReport, other: MemoryReport) -> MemoryReport:
    """``richer`` with the figures and allocations that only ``other`` has."""
    theirs = {space.name: space for space in other.spaces}
    spaces = [_fill(space, theirs.pop(space.name, None)) for space in richer.spaces]
    named = {a.space for a in richer.allocations}
    more = (
        tuple(a for a in other.allocations if a.space not in named)
        if richer.allocations
        else other.allocations
    )
    kinds = {richer.kind, other.kind}
    return replace(
        richer,
        kind="fragmentation" if "fragmentation" in kinds else richer.kind,
        severity=min(richer.severity, other.severity, key=lambda s: _RANK[s]),
        fits=False if False in (richer.fits, other.fits) else richer.fits,
        spaces=(*spaces, *theirs.values()),
        allocations=richer.allocations + more if richer.backend == "tpu" else richer.allocations or more,
        partial=richer.partial or bool(more and other.partial),
    )


def _fill(mine: Space, other: Space | None) -> Space:
    if other is None:
        return mine
    better = {}
    for field in fields(mine):
        known, theirs = getattr(mine, field.name), getattr(other, field.name)
        exact = known is not None and theirs is not None and slack_of(theirs) < slack_of(known)
        if known is None or (exact and abs(int(known) - int(theirs)) <= 2 * slack_of(known)):
            better[field.name] = theirs
    return replace(mine, **better)


def _joined(base: MemoryReport, earlier: MemoryReport, later: MemoryReport, times: int) -> MemoryReport:
    """``base`` with what holds of both."""
    return replace(
        base,
        program=earlier.program or later.program,
        target=base.target or earlier.target or later.target,
        times=times,
        hosts=tuple(dict.fromkeys(earlier.hosts + later.hosts)),
        suppressed=later.suppressed,
        notes=tuple(dict.fromkeys(earlier.notes + later.notes)),
    )


def _ranges(earlier: MemoryReport, later: MemoryReport) -> tuple[str, ...]:
    notes = tuple(dict.fromkeys(earlier.notes + later.notes))
    a, b = earlier.space, later.space
    if a is None or b is None or a.free is None or b.free is None or a.free == b.free:
        return notes
    differs = "What was free differs from telling to telling; the last one's figures are shown."
    return tuple(dict.fromkeys((*notes, differs)))


def _with_warnings(kept: list[MemoryReport]) -> list[MemoryReport]:
    """``kept`` with each rematerialization warning inside the failure that followed it.

    By itself such a warning is no failure; before one it says what XLA tried.
    """
    result: list[MemoryReport] = []
    pending: MemoryReport | None = None
    for report in sorted(kept, key=lambda r: r.source.line or 0):
        if report.kind == "remat-warning":
            if pending is not None:
                result.append(pending)
            pending = report
        elif pending is not None and report.kind == "hbm" and _may_follow(pending, report):
            result.append(replace(report, notes=(*report.notes, pending.message, *pending.notes)))
            pending = None
        else:
            if pending is not None and report.kind == "success":
                result.append(pending)
                pending = None
            result.append(report)
    if pending is not None:
        result.append(pending)
    order = {id(report.source): at for at, report in enumerate(kept)}
    return sorted(result, key=lambda report: order[id(report.source)])


def _may_follow(warning: MemoryReport, failure: MemoryReport) -> bool:
    same_program = not (warning.program and failure.program) or warning.program == failure.program
    return same_program and warning.backend in (None, failure.backend)
