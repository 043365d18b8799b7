"""pandas: one row an allocation. The only module that imports pandas, and only when called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape
from xlamem.show.rows import ALLOCATION_COLUMNS, COLUMNS, SIZE_COLUMNS, rows

if TYPE_CHECKING:
    import pandas

    from xlamem.report import MemoryReport

# Nullable types: an unknown size is <NA> and does not turn its column into floats, which lose bytes.
_TYPES = dict.fromkeys((*SIZE_COLUMNS, "report", "source_line", "live_start", "live_end", "line"), "Int64")
_TYPES |= {"expansion": "Float64", "at_peak": "boolean", "shape_assumed": "boolean"}


def to_frame(report: MemoryReport) -> pandas.DataFrame:
    """The allocations of ``report``, in its order; sizes are nullable integers (bytes)."""
    return _frame([report], ALLOCATION_COLUMNS)


def frame_of(reports: Iterable[MemoryReport]) -> pandas.DataFrame:
    """The allocations of several reports; the first columns say which report a row belongs to."""
    return _frame(reports, COLUMNS)


def _frame(reports: Iterable[MemoryReport], columns: Sequence[str]) -> pandas.DataFrame:
    import pandas

    records = [{name: _value(record[name]) for name in columns} for record in rows(reports)]
    # As objects first: on the way through floats, sizes from 2**53 on would lose bytes.
    frame = pandas.DataFrame(records, columns=list(columns), dtype=object)
    return frame.astype({name: _TYPES.get(name, "string") for name in columns})


def _value(value: object) -> object:
    # A lone surrogate cannot be held by a string column that lives in Arrow.
    return escape.unicode(value) if isinstance(value, str) else value
