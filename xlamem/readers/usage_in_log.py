"""Memory usage reports that stand in a log, after ``Memory usage report:`` or by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from xlamem.readers.assignment_report import Facts
from xlamem.readers.lines import Lines
from xlamem.readers.usage_report import parse_at, to_report
from xlamem.report import MemoryReport, Source

_BEGIN = re.compile(
    r"Memory Space: \S{1,100} \(color=0\)\s+Total bytes: \d"
    r"|Total bytes used: \d{1,20} \([^)]{0,40}\)\s+Allocations sorted by size"
)


def read_usage_in_log(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every usage report in ``lines``. By itself it does not say whether the program fits."""
    at = 0
    while (begin := _BEGIN.search(lines.text, at)) is not None:
        at = begin.end()
        first = lines.index_at(begin.start())
        usage = parse_at(lines.text, begin.start(), 1)
        if not usage.totals:
            continue
        last = min(first + usage.end - 1, len(lines.numbers) - 1)
        source = Source(name, "memory-usage-report", lines.numbers[first], lines.numbers[last])
        report = to_report(usage, Facts(source, backend="tpu"))
        yield replace(
            report,
            # Outputs are in this total, and are not in the one of the long report.
            spaces=tuple(replace(space, total=None) for space in report.spaces),
            allocations=tuple(
                replace(a, line=lines.numbers[min(first + (a.line or 1) - 1, len(lines.numbers) - 1)])
                for a in report.allocations
            ),
        )
        at = max(at, lines.starts[last])
