"""The answer on a terminal, or as plain text: what ran out, who holds it, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from xlamem.show import escape, holders, plain, suggestions, totals, words
from xlamem.show.pieces import bullet, grid, put, title

if TYPE_CHECKING:
    from xlamem.finding import Explanation, Fit
    from xlamem.report import MemoryReport

#: How many allocations are listed unless more are asked for.
TOP = 20

#: How many lines that nobody understood are shown.
_UNPARSED = 5

_HOW_KNOWN = {"reported": "as reported", "estimated": "estimated, where nothing is padded"}

_HEADLINE_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold green"}


def to_text(
    explanations: Sequence[Explanation], *, width: int = 100, top: int = TOP, everything: bool = False
) -> str:
    """What :func:`render` shows, as plain text: no colour, no control characters but newlines."""
    return plain.text_of(lambda console: render(explanations, console, top=top, everything=everything), width)


def render(
    explanations: Sequence[Explanation], console: Console, *, top: int = TOP, everything: bool = False
) -> None:
    """Print ``explanations`` on ``console``: the first in full, of the others one line each.

    ``top`` allocations are listed. ``everything`` shows each report in full, and in each all suggestions
    and checks.
    """
    if not explanations:
        return
    full = explanations if everything else explanations[:1]
    for number, explanation in enumerate(full):
        if number:
            console.print()
        _one(explanation, console, top, everything)
    rest = explanations[len(full) :]
    if rest:
        console.print()
        console.print(
            title("Also in the input", f"{words.count(len(rest), 'report')}; --all shows them in full")
        )
        for explanation in rest:
            line = f"{_where(explanation.report)}{explanation.headline}"
            console.print(bullet(Text(escape.visible(line)), console.width))


def _one(explanation: Explanation, console: Console, top: int, everything: bool) -> None:
    report = explanation.report
    # The answer stays on one line, however long: `| head -1` is how many people will read it.
    style = _HEADLINE_STYLES["info" if report.fits else report.severity]
    console.print(Text(escape.visible(explanation.headline), style=style), soft_wrap=True)
    if explanation.verdict:
        console.print(Text(escape.visible(explanation.verdict)))
    for line in _warnings(report):
        console.print(Text(escape.visible(line), style="yellow"))
    for section in _sections(explanation, console.width, top, everything):
        console.print()
        put(console, *section)


def _warnings(report: MemoryReport) -> Iterator[str]:
    if report.truncated:
        yield "The input breaks off inside this report: figures may be missing."
    if report.times > 1:
        yield f"The input says this {report.times} times."


def _sections(
    explanation: Explanation, width: int, top: int, everything: bool
) -> Iterator[list[RenderableType]]:
    report = explanation.report
    if explanation.findings:
        yield [
            title("Why"),
            *(bullet(Text(escape.visible(f.text)), width) for f in explanation.findings),
        ]
    if report.spaces:
        yield list(_spaces(report))
    if report.allocations:
        yield list(_holders(report, width, top))
    if explanation.advice:
        yield list(suggestions.blocks(explanation, everything=everything))
    if explanation.fits:
        yield [title("Where it would fit"), *_fits(explanation.fits, width)]
    if explanation.checks or report.unparsed or report.notes:
        yield list(_small_print(explanation, width, everything))


def _spaces(report: MemoryReport) -> Iterator[RenderableType]:
    first, *others = report.spaces
    yield title(totals.heading(report, first))
    rows = grid(3)
    rows.columns[1].justify = "right"
    for label, size, remark in totals.totals(report, first):
        rows.add_row(Text(label), Text(size, style="bold"), Text(remark, style="dim"))
    for space in others:
        if line := totals.in_a_line(space):
            rows.add_row(Text(escape.visible(space.name)), Text(""), Text(line, style="dim"))
    yield Padding(rows, (0, 0, 0, 2))


def _holders(report: MemoryReport, width: int, top: int) -> Iterator[RenderableType]:
    yield title("Who holds it", words.listed(report))
    yield Padding(holders.table(report, width=width - 2, top=top), (0, 0, 0, 2))
    hidden = words.ranked(report)[top:]
    if hidden:
        held = words.size(sum(int(report.allocations[i].bytes) for i in hidden))
        more = (
            f"{words.count(len(hidden), 'more allocation')}, {held} together; --top {len(report.allocations)}"
        )
        yield Padding(Text(f"{more} shows all", style="dim"), (0, 0, 0, 2))


def _fits(fits: Sequence[Fit], width: int) -> Iterator[RenderableType]:
    """The chips, smallest first, grouped by what would be needed on them and how well that is known."""
    groups: dict[tuple[int, str], list[Fit]] = {}
    for fit in fits:
        groups.setdefault((int(fit.needed), fit.provenance), []).append(fit)
    for (needed, provenance), group in groups.items():
        group.sort(key=lambda fit: int(fit.capacity))
        text = Text()
        text.append(words.size(needed), style="bold")
        text.append(f", {_HOW_KNOWN.get(provenance, provenance)}: ")
        fitting = ", ".join(_chip(fit) for fit in group if fit.fits)
        failing = ", ".join(_chip(fit) for fit in group if not fit.fits)
        text.append(f"fits {fitting}" if fitting else "fits none of these", style="green" if fitting else "")
        if failing:
            text.append(f"; {'not' if fitting else 'too small:'} {failing}")
        yield bullet(text, width)


def _chip(fit: Fit) -> str:
    return f"{escape.visible(fit.target)} ({words.size(fit.capacity)})"


def _small_print(explanation: Explanation, width: int, everything: bool) -> Iterator[RenderableType]:
    report = explanation.report
    for note in report.notes:
        yield Text(f"Note: {escape.visible(note)}")
    held = [check for check in explanation.checks if check.ok]
    for check in explanation.checks:
        if not check.ok:
            yield Text(f"Does not add up: {escape.visible(check.text)}", style="yellow")
    if held:
        hold = words.count(len(held), "check between the figures holds", "checks between the figures hold")
        yield Text(f"{hold}.", style="dim")
    if everything:
        yield from (bullet(Text(escape.visible(check.text), style="dim"), width) for check in held)
    if report.unparsed:
        yield Text(
            f"{words.count(len(report.unparsed), 'line')} of the report not understood:", style="yellow"
        )
        shown = report.unparsed if everything else report.unparsed[:_UNPARSED]
        for line in shown:
            text = escape.shorten(escape.visible(line.text), max(width - 14, 20))
            yield Text(f"  line {line.line}: {text}", style="dim")
        if len(shown) < len(report.unparsed):
            yield Text(f"  and {len(report.unparsed) - len(shown)} more", style="dim")


def _where(report: MemoryReport) -> str:
    place = "" if report.source.name == "-" else report.source.name
    if report.source.line is not None:
        return f"{place}:{report.source.line}: " if place else f"line {report.source.line}: "
    return f"{place}: " if place else ""
