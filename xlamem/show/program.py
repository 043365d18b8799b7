"""What only a dump or a module tells, as data: the peak, the timeline, the exact table with all its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show.rows import COLUMNS, REPORT_COLUMNS, about, allocation_row, axis_rows, axis_texts, integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlamem.finding import Explanation, Node, Peak
    from xlamem.report import Allocation, Buffer, LayoutCopy, Timeline

#: The columns of a value: those of an allocation, with the allocation it lives in and where.
VALUE_COLUMNS = (*REPORT_COLUMNS, "allocation", "offset", "index", *COLUMNS[len(REPORT_COLUMNS) :])


def facts(explanation: Explanation) -> dict[str, object]:
    """The keys that a report from a dump or a module has something under; null or empty for others."""
    whole = explanation.whole
    if whole is None:
        return {"peak": None, "copies": [], "timelines": [], "buffer_assignment": []}
    return {
        "peak": None if explanation.peak is None else _peak(explanation.peak),
        "copies": [_copy(copy) for copy in whole.copies],
        "timelines": [_timeline(found) for found in whole.timelines],
        "buffer_assignment": [_assigned(n, a) for n, a in enumerate(whole.allocations)],
    }


def _peak(peak: Peak) -> dict[str, object]:
    return {
        "space": peak.space,
        "position": peak.position,
        "steps": peak.steps,
        "instruction": peak.instruction,
        "op_name": peak.op_name,
        "source_file": peak.source_file,
        "source_line": peak.source_line,
        "live": integer(peak.live),
        "unpadded": integer(peak.unpadded),
        "padding": integer(peak.padding),
        "fragmentation": integer(peak.fragmentation),
        "values_alive": peak.alive,
        "values_not_alive": len(peak.others),
        "owners": [_node(child) for child in peak.owners.children],
        "scopes": [_node(child) for child in peak.scopes.children],
        "sources": [_node(child) for child in peak.sources.children],
        "padded_axes": [
            {
                "why": a.why,
                "from": a.before,
                "to": a.after,
                "bytes": a.bytes,
                "values": a.count,
                "text": a.text,
            }
            for a in peak.axes
        ],
        "provenance": peak.provenance,
    }


def _node(node: Node) -> dict[str, object]:
    found: dict[str, object] = {"name": node.name, "bytes": node.bytes, "padding": node.padding}
    if node.known is not None:
        found["known_by"] = node.known
    found["children"] = [_node(child) for child in node.children]
    return found


def _copy(copy: LayoutCopy) -> dict[str, object]:
    return {
        "name": copy.name,
        "opcode": copy.opcode,
        "bytes": integer(copy.bytes),
        "from": str(copy.from_shape),
        "to": str(copy.to_shape),
        "producer": copy.producer,
        "producer_op_name": copy.producer_op_name,
        "consumer": copy.consumer,
        "consumer_op_name": copy.consumer_op_name,
        "op_name": copy.op_name,
        "source_file": copy.source_file,
        "source_line": copy.source_line,
        "live": None if copy.live is None else list(copy.live),
        "at_peak": copy.at_peak,
    }


def _timeline(found: Timeline) -> dict[str, object]:
    return {
        "space": found.space,
        "peak_at": found.peak_at,
        "live": list(found.live),
        "unpadded": list(found.unpadded),
        "instructions": list(found.instructions),
    }


def _assigned(number: int, a: Allocation) -> dict[str, object]:
    return {
        "index": number,
        "space": a.space,
        "kind": a.kind,
        "bytes": integer(a.bytes),
        "unpadded_bytes": integer(a.unpadded_bytes),
        "label": a.label,
        "values": [_value(value) for value in a.buffers],
    }


def _value(value: Buffer) -> dict[str, object]:
    unpadded = _unpadded(value)
    return {
        "name": value.name,
        "index": list(value.index),
        "bytes": integer(value.bytes),
        "offset": value.offset,
        "unpadded_bytes": unpadded,
        "padding_bytes": None if unpadded is None else int(value.bytes) - unpadded,
        "shape": None if value.shape is None else str(value.shape),
        "opcode": value.opcode,
        "op_name": value.op_name,
        "source_file": value.source_file,
        "source_line": value.source_line,
        "axis_padding": axis_rows(value.shape),
        "owner": value.owner,
        "live": None if value.live is None else list(value.live),
        "at_peak": value.at_peak,
    }


def _unpadded(value: Buffer) -> int | None:
    # A tuple's own buffer is a table of pointers: all of it is data.
    if value.shape is None:
        return None
    size = int(value.bytes)
    return size if value.shape.is_tuple else min(size, value.shape.unpadded_bytes)


def values(explanations: Iterable[Explanation]) -> Iterator[dict[str, object]]:
    """One flat row a value, under :data:`VALUE_COLUMNS`; an allocation without values is a row of its own."""
    for number, explanation in enumerate(explanations, 1):
        report = explanation.whole or explanation.report
        facts_of_report = about(number, report)
        for position, allocation in enumerate(report.allocations):
            own = facts_of_report | allocation_row(allocation)
            own |= {"allocation": position, "offset": None, "index": None}
            for value in allocation.buffers or (None,):
                record = own if value is None else own | _flat(value)
                shape = allocation.shape if value is None else value.shape
                live = allocation.live if value is None else value.live
                record["axis_padding"] = "; ".join(axis_texts(shape)) or None
                record["live_start"], record["live_end"] = live or (None, None)
                yield {column: record[column] for column in VALUE_COLUMNS}


def _flat(value: Buffer) -> dict[str, object]:
    row = _value(value)
    unpadded = _unpadded(value)
    row["expansion"] = int(value.bytes) / unpadded if unpadded else None
    row["index"] = "".join(f"{{{n}}}" for n in value.index) or None
    return row
