"""Allocations as rows: the one way from a report to JSON, CSV and pandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlamem.report import Allocation, MemoryReport
    from xlamem.shape import Shape

#: The columns that say which report a row belongs to. ``report`` counts from 1.
REPORT_COLUMNS = ("report", "report_kind", "input", "program", "target")

#: The columns that hold sizes in bytes.
SIZE_COLUMNS = (
    "bytes",
    "unpadded_bytes",
    "padding_bytes",
    "reported_bytes",
    "reported_unpadded_bytes",
)

#: The columns of an allocation, named as the keys of the JSON; ``live`` is two of them here.
ALLOCATION_COLUMNS = (
    "space",
    "kind",
    "bytes",
    "unpadded_bytes",
    "padding_bytes",
    "expansion",
    "shape",
    "opcode",
    "op_name",
    "label",
    "source_file",
    "source_line",
    "axis_padding",
    "owner",
    "live_start",
    "live_end",
    "at_peak",
    "provenance",
    "name",
    "tag",
    "reported_bytes",
    "reported_unpadded_bytes",
    "shape_assumed",
    "line",
)

COLUMNS = REPORT_COLUMNS + ALLOCATION_COLUMNS


def allocation_row(allocation: Allocation) -> dict[str, object]:
    """The facts of one allocation under the JSON's keys; ``axis_padding`` and ``live`` are structures."""
    return {
        "space": allocation.space,
        "kind": allocation.kind,
        "bytes": int(allocation.bytes),
        "unpadded_bytes": integer(allocation.unpadded_bytes),
        "padding_bytes": integer(allocation.padding_bytes),
        "expansion": allocation.expansion,
        "shape": None if allocation.shape is None else str(allocation.shape),
        "opcode": allocation.opcode,
        "op_name": allocation.op_name,
        "label": allocation.label,
        "source_file": allocation.source_file,
        "source_line": allocation.source_line,
        "axis_padding": axis_rows(allocation.shape),
        "owner": allocation.owner,
        "live": None if allocation.live is None else list(allocation.live),
        "at_peak": allocation.at_peak,
        "provenance": allocation.provenance,
        "name": allocation.name,
        "tag": allocation.tag,
        "reported_bytes": integer(allocation.reported_bytes),
        "reported_unpadded_bytes": integer(allocation.reported_unpadded_bytes),
        "shape_assumed": allocation.shape_assumed,
        "line": allocation.line,
    }


def rows(reports: Iterable[MemoryReport]) -> Iterator[dict[str, object]]:
    """One flat row an allocation, over all ``reports``, with exactly :data:`COLUMNS` as keys."""
    for number, report in enumerate(reports, 1):
        facts_of_report = about(number, report)
        for allocation in report.allocations:
            facts = facts_of_report | allocation_row(allocation)
            facts["axis_padding"] = "; ".join(axis_texts(allocation.shape)) or None
            facts["live_start"], facts["live_end"] = allocation.live or (None, None)
            yield {column: facts[column] for column in COLUMNS}


def about(number: int, report: MemoryReport) -> dict[str, object]:
    """Which report a row belongs to, under :data:`REPORT_COLUMNS`."""
    return {
        "report": number,
        "report_kind": report.kind,
        "input": report.source.name,
        "program": report.program,
        "target": None if report.target is None else report.target.name,
    }


def axis_rows(shape: Shape | None) -> list[dict[str, object]]:
    """Which logical axes are padded, from what to what, and on what."""
    if shape is None:
        return []
    return [
        {"axis": axis.axis, "from": axis.size, "to": axis.padded, "why": axis.why, "text": axis.text}
        for axis in shape.axis_padding
    ]


def axis_texts(shape: Shape | None) -> list[str]:
    """The same for people: "axis 1: 1 padded to 2 sublanes (2x)"."""
    return [] if shape is None else [axis.text for axis in shape.axis_padding]


def integer(value: int | None) -> int | None:
    """A plain integer: a printed size is one that carries its slack, which no output should see."""
    return None if value is None else int(value)
