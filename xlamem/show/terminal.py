"""The answer on a terminal, or as plain text: what ran out, who holds it, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape, holders, suggestions, totals, words
from xlamem.show.layout import Column, Line, Span, table, text_of, widest, wrap
from xlamem.show.pieces import BLANK, bullet, paragraph, title

if TYPE_CHECKING:
    from rich.console import Console

    from xlamem.finding import Explanation, Fit, Peak
    from xlamem.report import MemoryReport

#: How many allocations are listed unless more are asked for.
TOP = 20

#: How many lines that nobody understood are shown.
_UNPARSED = 5

#: How many of the other reports get their line.
_OTHERS = 30

#: How many chips that fit, and that do not, are named.
_CHIPS = 6

_HOW_KNOWN = {
    "reported": "as reported",
    "compiled": "as compiled",
    "estimated": "estimated, where nothing is padded",
}

_HEADLINE_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold green"}


def to_text(
    explanations: Sequence[Explanation], *, width: int = 100, top: int = TOP, everything: bool = False
) -> str:
    """What :func:`render` shows, as plain text: no colour, no control characters but newlines."""
    return text_of(lines(explanations, width=width, top=top, everything=everything))


def render(
    explanations: Sequence[Explanation], console: Console, *, top: int = TOP, everything: bool = False
) -> None:
    """Print ``explanations`` on ``console``, in colour if it has any. See :func:`lines`."""
    from xlamem.show import color

    color.put(lines(explanations, width=console.width, top=top, everything=everything), console)


def lines(
    explanations: Sequence[Explanation], *, width: int, top: int = TOP, everything: bool = False
) -> Iterator[Line]:
    """The first of ``explanations`` in full, of the others one line each.

    ``top`` allocations are listed, and of the others no more than 30. ``everything`` shows each report in full,
    and in each all suggestions and checks.
    """
    full = explanations if everything else explanations[:1]
    several = len({explanation.report.source.name for explanation in explanations}) > 1
    for number, explanation in enumerate(full):
        if number:
            yield BLANK
        yield from _one(explanation, width, top, everything, several)
    rest = explanations[len(full) :]
    if rest:
        yield BLANK
        remark = f"{words.count(len(rest), 'report')}; --all shows all in full"
        if any(e.report.source.format == "dump" for e in rest):
            remark += ", --module NAME one program of a dump"
        yield from wrap(title("Also in the input", remark), width)
        for explanation in rest[:_OTHERS]:
            yield from bullet(f"{_where(explanation.report, full[0].report)}{explanation.headline}", width)
        if len(rest) > _OTHERS:
            text = f"{len(rest) - _OTHERS} more; --format csv --per failure has a row for each"
            yield from paragraph(text, width, style="dim", indent=2)


def _one(explanation: Explanation, width: int, top: int, everything: bool, several: bool) -> Iterator[Line]:
    report = explanation.report
    # The answer stays on one line, however long: `| head -1` is how many people will read it.
    style = _HEADLINE_STYLES["info" if report.fits else report.severity]
    yield [(escape.visible(explanation.headline), style)]
    if explanation.verdict:
        yield from paragraph(explanation.verdict, width)
    if several:
        line = f":{report.source.line}" if report.source.line else ""
        yield from paragraph(f"In {escape.visible(report.source.name)}{line}", width, style="dim")
    if report.truncated:
        text = "The input breaks off inside this report: figures may be missing."
        yield from paragraph(text, width, style="yellow")
    if report.suppressed:
        text = "The compiler was told to go on after this (xla_tpu_no_crash_on_oom)."
        yield from paragraph(text, width, style="dim")
    if len(report.hosts) > 1:
        text = f"Seen from {words.count(len(report.hosts), 'host, rank or process', 'hosts, ranks or processes')}."
        yield from paragraph(text, width, style="dim")
    elif report.times > 1:
        yield from paragraph(f"The input says this {report.times} times.", width, style="dim")
    for section in _sections(explanation, width, top, everything):
        yield BLANK
        yield from section


def _sections(explanation: Explanation, width: int, top: int, everything: bool) -> Iterator[Iterator[Line]]:
    report = explanation.report
    if explanation.findings:
        yield _findings(explanation, width)
    if report.spaces:
        yield _spaces(report, width)
    if explanation.peak is not None:
        yield from _at_the_peak(explanation, explanation.peak, width, top, everything)
    if report.allocations:
        yield _holders(report, width, top)
    if explanation.advice:
        yield suggestions.lines(explanation, width=width, everything=everything)
    if explanation.fits:
        yield _fits(explanation, width, everything)
    if explanation.checks or report.unparsed or report.notes:
        yield _small_print(explanation, width, everything)


def _at_the_peak(
    explanation: Explanation, found: Peak, width: int, top: int, everything: bool
) -> Iterator[Iterator[Line]]:
    """What only a dump or a module tells."""
    # Not at the top: logs, which are read more often, have none of this.
    from xlamem.show import copies, owners, padded, peak

    yield peak.lines(found, width=width, top=top, everything=everything)
    yield owners.lines(found, width=width, everything=everything)
    if padded.is_worth_it(found):
        yield padded.lines(found, width=width, everything=everything)
    if explanation.report.copies:
        yield copies.lines(explanation, width=width, top=top, everything=everything)


def _findings(explanation: Explanation, width: int) -> Iterator[Line]:
    yield title("Why")
    for finding in explanation.findings:
        yield from bullet(finding.text, width)


def _spaces(report: MemoryReport, width: int) -> Iterator[Line]:
    first, *others = report.spaces
    yield from wrap(title(totals.heading(report, first)), width)
    facts = totals.totals(report, first)
    facts += [(escape.visible(s.name), "", text) for s in others if (text := totals.in_a_line(s))]
    names = min(widest(label for label, _, _ in facts), 24)
    sizes = widest(size for _, size, _ in facts)
    columns = [
        Column("", names),
        Column("", sizes, right=True),
        Column("", max(width - names - sizes - 6, 14)),
    ]
    yield from table(
        columns,
        ([[[(label, "")]], [[(size, "bold")]], [[(remark, "dim")]]] for label, size, remark in facts),
        indent=2,
    )


def _holders(report: MemoryReport, width: int, top: int) -> Iterator[Line]:
    head = title("Who holds it", words.listed(report))
    yield from wrap(head, width)
    yield from holders.lines(report, width=width, top=top)
    hidden = [report.allocations[i] for i in words.ranked(report)[top:]]
    if hidden:
        main = report.space.name if report.space is not None else hidden[0].space
        here = [a for a in hidden if a.space == main]
        # Bytes of different memories are not added up.
        parts = []
        if here:
            held = words.size(sum(int(a.bytes) for a in here))
            parts.append(f"{words.count(len(here), 'more allocation')}, {held} together")
        if len(here) < len(hidden):
            parts.append(f"{len(hidden) - len(here)} in other memory spaces")
        text = f"{'; '.join(parts)}; --top {len(report.allocations)} shows all"
        yield from paragraph(text, width, style="dim", indent=2)


def _fits(explanation: Explanation, width: int, everything: bool) -> Iterator[Line]:
    """The chips, by what would be needed on them and how well that is known."""
    yield title("Where it would fit")
    space = explanation.report.space
    bound = None if space is None else space.used
    groups: dict[tuple[int, str], list[Fit]] = {}
    for fit in explanation.fits:
        groups.setdefault((int(fit.needed), fit.provenance), []).append(fit)
    for (needed, provenance), group in groups.items():
        if provenance == "compiled" and len(group) == 1:
            continue  # the chip that it was compiled for: that is the first line's answer
        group.sort(key=lambda fit: int(fit.capacity))
        known = _HOW_KNOWN.get(provenance, provenance)
        if provenance == "estimated" and needed == bound:
            at_most = explanation.report.provenance == "estimated"
            known = "estimated, at most" if at_most else "estimated from this compile, only another one tells"
        spans: list[Span] = [
            ("at least " if group[0].least else "", ""),
            (words.size(needed), "bold"),
            (f"{' and the arguments' if group[0].least else ''}, {known}: ", ""),
            *_chips(group, everything),
        ]
        yield from wrap(spans, width, "  - ")


def _chips(fits: list[Fit], everything: bool) -> Iterator[Span]:
    """Which chips it fits and which not, both smallest first; those next to the border matter most."""
    fitting = [fit for fit in fits if fit.fits]
    failing = [fit for fit in fits if fit.fits is False]
    unclear = [fit for fit in fits if fit.fits is None]
    if unclear:
        yield f"too close to tell for {', '.join(map(_chip, unclear))}; ", "yellow"
    most = max(len(fitting), len(failing)) if everything else _CHIPS
    if not failing and not everything:
        yield f"fits all {len(fitting)}, from {_chip(fitting[0])} on", "green"
        return
    if not fitting and not everything:
        yield f"fits none of {len(failing)}, not even {_chip(failing[-1])}", ""
        return
    if fitting:
        rest = f" and {len(fitting) - most} larger" if len(fitting) > most else ""
        yield f"fits {', '.join(map(_chip, fitting[:most]))}{rest}", "green"
    if failing:
        rest = f" and {len(failing) - most} smaller" if len(failing) > most else ""
        yield f"{'; ' if fitting else ''}not {', '.join(map(_chip, failing[-most:]))}{rest}", ""


def _chip(fit: Fit) -> str:
    return f"{escape.visible(fit.target)} ({words.size(fit.capacity)})"


def _small_print(explanation: Explanation, width: int, everything: bool) -> Iterator[Line]:
    report = explanation.report
    for note in report.notes:
        yield from paragraph(f"Note: {note}", width)
    held = [check for check in explanation.checks if check.ok]
    for check in explanation.checks:
        if not check.ok:
            yield from paragraph(f"Does not add up: {check.text}", width, style="yellow")
    if held:
        hold = words.count(len(held), "check between the figures holds", "checks between the figures hold")
        yield [(f"{hold}.", "dim")]
    if everything:
        for check in held:
            yield from bullet(check.text, width, style="dim")
    if report.unparsed:
        count = words.count(len(report.unparsed), "line")
        yield from paragraph(f"{count} of the report not understood:", width, style="yellow")
        shown = report.unparsed if everything else report.unparsed[:_UNPARSED]
        for line in shown:
            lead = f"  line {line.line}: "
            yield [(f"{lead}{escape.shorten(escape.visible(line.text), width - len(lead))}", "dim")]
        if len(shown) < len(report.unparsed):
            yield [(f"  and {len(report.unparsed) - len(shown)} more", "dim")]


def _where(report: MemoryReport, first: MemoryReport) -> str:
    """Where a report stands: its line, and its file if that is another than the first one's."""
    file = "" if report.source.name == first.source.name else report.source.name
    line = report.source.line
    if line is None:
        return f"{file}: " if file else ""
    return f"{file}:{line}: " if file else f"line {line}: "
