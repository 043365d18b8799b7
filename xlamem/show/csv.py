"""CSV (RFC 4180): one row an allocation, over all reports, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape
from xlamem.show.rows import COLUMNS, integer, rows

if TYPE_CHECKING:
    from xlamem.finding import Explanation


def to_csv(explanations: Sequence[Explanation]) -> str:
    """All allocations of all reports, under :data:`xlamem.show.rows.COLUMNS`: always all of them."""
    return table(COLUMNS, rows(explanation.report for explanation in explanations))


def to_values_csv(explanations: Sequence[Explanation]) -> str:
    """All values of all allocations, under :data:`xlamem.show.program.VALUE_COLUMNS`, alive at the peak or not."""
    from xlamem.show.program import VALUE_COLUMNS, values

    return table(VALUE_COLUMNS, values(explanations))


#: One row a failure: what it is and where, then the figures of the memory space that it is about.
FAILURE_COLUMNS = (
    "input",
    "line",
    "kind",
    "severity",
    "fits",
    "program",
    "backend",
    "target",
    "space",
    "used",
    "capacity",
    "over",
    "requested",
    "free",
    "padding",
    "times",
    "headline",
    "verdict",
)


def to_failures_csv(explanations: Sequence[Explanation]) -> str:
    """One row a report, under :data:`FAILURE_COLUMNS`: for many logs at once."""
    return table(FAILURE_COLUMNS, (_failure(explanation) for explanation in explanations))


def _failure(explanation: Explanation) -> dict[str, object]:
    report = explanation.report
    space = report.space
    sizes = {"over": "excess"} | {name: name for name in ("used", "capacity", "requested", "free", "padding")}
    record: dict[str, object] = {
        "input": report.source.name,
        "line": report.source.line,
        "kind": report.kind,
        "severity": report.severity,
        "fits": report.fits,
        "program": report.program,
        "backend": report.backend,
        "target": report.target.name if report.target else None,
        "space": space.name if space else None,
        "times": report.times,
        "headline": explanation.headline,
        "verdict": explanation.verdict,
    }
    return record | {key: integer(getattr(space, name)) if space else None for key, name in sizes.items()}


def table(columns: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """``records`` under a header of ``columns``; an absent value is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_cell(record[column]) for column in columns] for record in records)
    return out.getvalue()


def _cell(value: object) -> object:
    # Numbers stay numbers, a negative one too: only text can be a formula in disguise.
    if isinstance(value, bool):
        return "true" if value else "false"
    return escape.spreadsheet(value) if isinstance(value, str) else value
