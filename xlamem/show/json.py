"""JSON, schema 1: for agents, CI and tuners. Keys may be added, never renamed; an absent fact is null."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape, program
from xlamem.show.rows import allocation_row, integer

if TYPE_CHECKING:
    from xlamem.finding import Advice, Explanation, Fit
    from xlamem.report import MemoryReport, Source, Space

SCHEMA = 1

_SIZES_OF_A_SPACE = (
    "capacity",
    "used",
    "over",
    "requested",
    "free",
    "reserved",
    "arguments",
    "outputs",
    "aliased",
    "temps",
    "constants",
    "overlays",
    "scoped",
    "unpadded",
    "padded",
    "padding",
    "fragmentation",
    "peak",
    "total",
    # Added to the schema's first draft.
    "program",
    "program_reserved",
    "largest_free",
    "reservable",
    "goal",
)


def to_json(explanations: Sequence[Explanation], *, command: str = "explain") -> str:
    """The whole of ``explanations``; ``source`` is that of the first, ``sources`` names every input once."""
    inputs = {e.report.source.name: e.report.source for e in reversed(explanations)}
    first = explanations[0].report.source if explanations else None
    return document(
        command,
        {
            "source": None if first is None else {"name": first.name, "format": first.format},
            "sources": [{"name": s.name, "format": s.format} for s in reversed(inputs.values())],
            "reports": [report_object(explanation) for explanation in explanations],
        },
    )


def document(command: str, content: dict[str, object]) -> str:
    """One JSON document with its schema number: ASCII only, hence inert on any terminal."""
    whole = {"schema": SCHEMA, "command": command, **content}
    return json.dumps(_clean(whole), indent=2, allow_nan=False) + "\n"


def _clean(value: object) -> object:
    """What strict readers of JSON accept: no lone surrogates, no NaN."""
    if isinstance(value, str):
        return escape.unicode(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {escape.unicode(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def report_object(explanation: Explanation) -> dict[str, object]:
    """One report with all that was said about it."""
    report = explanation.report
    return {
        "kind": report.kind,
        "severity": report.severity,
        "backend": report.backend,
        "target": _target(report),
        "program": report.program,
        "fits": report.fits,
        "provenance": report.provenance,
        "headline": explanation.headline,
        "verdict": explanation.verdict,
        "message": report.message,
        "source": _source(report.source),
        "spaces": _spaces(report),
        # Of the space the report is about, arguments and outputs included; a space's own "padding" is of its temps.
        "padding": explanation.padding and explanation.padding._asdict(),
        "allocations": [allocation_row(allocation) for allocation in report.allocations],
        "findings": [
            {"name": f.name, "bytes": integer(f.bytes), "text": f.text} for f in explanation.findings
        ],
        "advice": [advice_object(advice) for advice in explanation.advice],
        "would_fit": [_fit(fit) for fit in explanation.fits],
        "checks": [{"name": c.name, "ok": c.ok, "text": c.text} for c in explanation.checks],
        "partial": report.partial,
        "truncated": report.truncated,
        "suppressed": report.suppressed,
        "hosts": list(report.hosts),
        "times": report.times,
        # Of a compile, else null: the same numbers that its notes tell in words.
        "flops": report.flops,
        "compile_seconds": report.compile_seconds,
        "notes": list(report.notes),
        "unparsed": [{"line": line.line, "text": line.text} for line in report.unparsed],
        **program.facts(explanation),
    }


def advice_object(advice: Advice) -> dict[str, object]:
    """One change. ``about`` is the position of the allocation in the report's list, counted from 0."""
    return {
        "name": advice.name,
        "verified": advice.verified,
        "before": integer(advice.before),
        "after": integer(advice.after),
        "saved": integer(advice.saved),
        "safe": advice.safe,
        "value_error": advice.value_error,
        "how": advice.how,
        "text": advice.text,
        "provenance": advice.provenance,
        "about": advice.about,
    }


def _target(report: MemoryReport) -> dict[str, object] | None:
    target = report.target
    return None if target is None else {"name": target.name, "inferred": target.inferred}


def _source(source: Source) -> dict[str, object]:
    return {
        "name": source.name,
        "format": source.format,
        "line": source.line,
        "end_line": source.end_line,
    }


def _spaces(report: MemoryReport) -> dict[str, object]:
    spaces: dict[str, object] = {}
    for space in report.spaces:
        # The first of a name is the one that the report is about.
        spaces.setdefault(space.name, _space(space))
    return spaces


def _space(space: Space) -> dict[str, object]:
    facts: dict[str, object] = {name: integer(getattr(space, name)) for name in _SIZES_OF_A_SPACE}
    facts["over"] = integer(space.excess)
    facts["utilization"] = space.utilization
    facts["fragmentation_ratio"] = space.fragmentation_ratio
    return facts


def _fit(fit: Fit) -> dict[str, object]:
    return {
        "target": fit.target,
        "fits": fit.fits,
        "needed": int(fit.needed),
        "capacity": int(fit.capacity),
        "provenance": fit.provenance,
        "least": fit.least,
    }
