"""What to change, for people: grouped by allocation, the best first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show import escape, pieces, words
from xlamem.show.layout import wrap

if TYPE_CHECKING:
    from xlamem.finding import Advice, Explanation
    from xlamem.report import MemoryReport
    from xlamem.show.layout import Line

#: How many suggestions are shown for one allocation, unless all are asked for.
_EACH = 3

# A suggestion that saves less than this share of the best one only hides it.
_WORTH_SHOWING = 0.01


def lines(explanation: Explanation, *, width: int, everything: bool) -> Iterator[Line]:
    """The suggestions of ``explanation``; without ``everything`` only those that matter most."""
    yield pieces.title("What to change")
    groups, hidden = select(explanation, everything=everything)
    ranks = {index: rank for rank, index in enumerate(words.ranked(explanation.report), 1)}
    for about, group in groups.items():
        yield from wrap(_about(explanation.report, about, ranks), width, "  ", "      ")
        for advice in group:
            yield from block(advice, width=width, indent=4)
    if hidden:
        more = f"{words.count(hidden, 'more suggestion')} not shown; --all shows all"
        yield from pieces.paragraph(more, width, style="dim", indent=2)


def select(explanation: Explanation, *, everything: bool) -> tuple[dict[int | None, list[Advice]], int]:
    """The suggestions to show, by what they are about, and how many others there are."""
    best = max((advice.saved or 0 for advice in explanation.advice), default=0)
    groups: dict[int | None, list[Advice]] = {}
    hidden = 0
    for advice in explanation.advice:
        minor = advice.saved is not None and advice.saved < best * _WORTH_SHOWING
        if not everything and (minor or len(groups.get(advice.about, ())) >= _EACH):
            hidden += 1
            continue
        groups.setdefault(advice.about, []).append(advice)
    return groups, hidden


def block(advice: Advice, *, width: int, indent: int) -> Iterator[Line]:
    """One suggestion: the sentence, what it gains and how sure that is, and what to type."""
    yield from pieces.paragraph(advice.text, width, indent=indent)
    style = "green" if (advice.saved or 0) > 0 else "dim"
    yield from pieces.paragraph(words.standing(advice), width, style=style, indent=indent + 2)
    if advice.how:
        yield from pieces.code(advice.how, indent=indent + 4)


def _about(report: MemoryReport, about: int | None, ranks: dict[int, int]) -> Line:
    if about is None or about not in ranks:
        return [("the whole program", "dim")]
    allocation = report.allocations[about]
    what = words.holder(allocation) if allocation.shape is None else str(allocation.shape)
    return [
        (f"#{ranks[about]}", "bold"),
        (f" {escape.visible(what)}, {words.size(allocation.bytes)}", "dim"),
    ]
