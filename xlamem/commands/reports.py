"""Showing reports, in whatever format: what every command that ends with some has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xlamem.commands.options import Output

if TYPE_CHECKING:
    from xlamem.report import MemoryReport
    from xlamem.show.layout import Line


def show(reports: Sequence[MemoryReport], output: Output, *, command: str, everything: bool = False) -> None:
    """Explain ``reports`` and write them. ``command`` is named in JSON."""
    from xlamem.explanation import explain

    explanations = [explain(report) for report in reports]

    def text(width: int) -> Iterator[Line]:
        from xlamem.show.terminal import lines

        return lines(explanations, width=width, top=output.top, everything=everything)

    def json() -> str:
        from xlamem.show.json import to_json

        return to_json(explanations, command=command)

    def csv() -> str:
        from xlamem.show.csv import to_csv

        return to_csv(explanations)

    def markdown() -> str:
        from xlamem.show.markdown import to_markdown

        return to_markdown(explanations, top=output.top)

    output.emit(text, json=json, csv=csv, markdown=markdown)
