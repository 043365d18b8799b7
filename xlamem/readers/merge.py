"""The same report told several times becomes one, and the one that stopped the run comes first.

The compiler writes a failure to its own log, the exception repeats it, and every host of a slice says the
same. What differs in any figure or item is another report.
"""

from __future__ import annotations

from dataclasses import replace

from xlamem.report import MemoryReport

_RANK = {"error": 0, "warning": 1, "info": 2}


def merge(reports: list[MemoryReport]) -> list[MemoryReport]:
    """``reports`` without repetitions, the last error first and the others in the order of the input.

    One that comes again counts as told where it was told last.
    """
    kept: list[MemoryReport] = []
    for report in reports:
        for at, earlier in enumerate(kept):
            if _same(earlier, report):
                fuller = max((earlier, report), key=lambda r: (len(r.allocations), not r.truncated))
                del kept[at]
                report = replace(fuller, times=earlier.times + report.times)
                break
        kept.append(report)
    kept.sort(key=lambda report: _RANK[report.severity])
    errors = sum(report.severity == "error" for report in kept)
    if errors > 1:
        kept.insert(0, kept.pop(errors - 1))
    return kept


_FIGURES = ("used", "capacity", "over", "total", "program", "temps", "arguments", "outputs")


def _same(a: MemoryReport, b: MemoryReport) -> bool:
    """Whether two reports tell the same failure; one of them may have been cut short."""
    if (a.kind, a.program) != (b.kind, b.program):
        return False
    common = 0
    for x in a.spaces:
        for y in b.spaces:
            if x.name != y.name:
                continue
            for field in _FIGURES:
                mine, other = getattr(x, field), getattr(y, field)
                if mine is None or other is None:
                    continue
                if mine != other:
                    return False
                common += 1
    pairs = list(zip(a.allocations, b.allocations, strict=False))
    # The last item of a report that was cut short may lack its later lines.
    whole = pairs[:-1] if a.truncated or b.truncated else pairs
    if any((x.reported_bytes, x.shape, x.label) != (y.reported_bytes, y.shape, y.label) for x, y in whole):
        return False
    return bool(common or whole)
