"""What to change, for people: grouped by allocation, the best first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from xlamem.show import escape, pieces, words

if TYPE_CHECKING:
    from xlamem.finding import Advice, Explanation
    from xlamem.report import MemoryReport

#: How many suggestions are shown for one allocation, unless all are asked for.
_EACH = 3

# A suggestion that saves less than this share of the best one only hides it.
_WORTH_SHOWING = 0.01


def blocks(explanation: Explanation, *, everything: bool) -> Iterator[RenderableType]:
    """The suggestions of ``explanation``; without ``everything`` only those that matter most."""
    yield Text("What to change", style="bold")
    groups, hidden = select(explanation, everything=everything)
    ranks = {index: rank for rank, index in enumerate(words.ranked(explanation.report), 1)}
    for about, group in groups.items():
        yield _about(explanation.report, about, ranks)
        for advice in group:
            yield from block(advice, indent=4)
    if hidden:
        yield Text(f"  {words.count(hidden, 'more suggestion')} not shown; --all shows all", style="dim")


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


def block(advice: Advice, *, indent: int) -> Iterator[RenderableType]:
    """One suggestion: the sentence, what it gains and how sure that is, and what to type."""
    yield Padding(Text(escape.visible(advice.text)), (0, 0, 0, indent))
    style = "green" if (advice.saved or 0) > 0 else "dim"
    yield Padding(Text(words.standing(advice), style=style), (0, 0, 0, indent + 2))
    if advice.how:
        for line in escape.visible_lines(advice.how):
            yield pieces.code(f"{' ' * (indent + 4)}{line}")


def _about(report: MemoryReport, about: int | None, ranks: dict[int, int]) -> RenderableType:
    if about is None or not 0 <= about < len(report.allocations):
        return Padding(Text("the whole program", style="dim"), (0, 0, 0, 2))
    allocation = report.allocations[about]
    what = words.holder(allocation) if allocation.shape is None else str(allocation.shape)
    text = Text(f"#{ranks[about]}", style="bold")
    text.append(f" {escape.visible(what)}, {words.size(allocation.bytes)}", style="dim")
    return Padding(text, (0, 0, 0, 2))
