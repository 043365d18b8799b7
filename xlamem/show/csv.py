"""CSV (RFC 4180): one row an allocation, over all reports, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape
from xlamem.show.rows import COLUMNS, rows

if TYPE_CHECKING:
    from xlamem.finding import Explanation


def to_csv(explanations: Sequence[Explanation]) -> str:
    """All allocations of all reports, under :data:`xlamem.show.rows.COLUMNS`: always all of them."""
    return table(COLUMNS, rows(explanation.report for explanation in explanations))


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
