"""Showing reports, in whatever format: what every command that ends with some has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xlamem.commands.options import Output

if TYPE_CHECKING:
    from xlamem.report import MemoryReport
    from xlamem.show.layout import Line


def show(
    reports: Sequence[MemoryReport],
    output: Output,
    *,
    command: str,
    everything: bool = False,
    per: str | None = None,
) -> None:
    """Explain ``reports`` and write them.

    ``command`` is named in JSON. ``per`` is what a row of CSV is: "allocation", "value" or "failure"; by itself
    a failure if there are several inputs, an allocation otherwise.
    """
    from xlamem.explanation import brief, explain, outline

    several = len({report.source.name for report in reports}) > 1
    row = per or ("failure" if several else "allocation")
    # What a row or a line of one of many has no room for is not worked out.
    if output.format == "csv" and row == "failure":
        explanations = [brief(report) for report in reports]
    elif output.format == "text" and not everything:
        explanations = [outline(report) if at else explain(report) for at, report in enumerate(reports)]
    else:
        explanations = [explain(report) for report in reports]

    def text(width: int) -> Iterator[Line]:
        from xlamem.show.terminal import lines

        return lines(explanations, width=width, top=output.top, everything=everything)

    def json() -> str:
        from xlamem.show.json import to_json

        return to_json(explanations, command=command)

    def csv() -> str:
        from xlamem.show.csv import to_csv, to_failures_csv, to_values_csv

        if row == "value":
            return to_values_csv(explanations)
        return to_failures_csv(explanations) if row == "failure" else to_csv(explanations)

    def markdown() -> str:
        from xlamem.show.markdown import to_markdown

        return to_markdown(explanations, top=output.top)

    output.emit(text, json=json, csv=csv, markdown=markdown)
