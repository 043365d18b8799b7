"""Layout copies: what only changes a layout, and the two instructions that disagree about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show import escape, words
from xlamem.show.layout import Line, wrap
from xlamem.show.pieces import paragraph, title

if TYPE_CHECKING:
    from xlamem.finding import Explanation
    from xlamem.report import LayoutCopy

_SHOWN = 3


def chosen(explanation: Explanation, *, everything: bool) -> tuple[LayoutCopy, ...]:
    """The copies to show: those alive at the peak, or all, the largest first."""
    if everything:
        return tuple(sorted(explanation.report.copies, key=lambda copy: -copy.bytes))
    return () if explanation.peak is None else explanation.peak.copies[:_SHOWN]


def summary(explanation: Explanation) -> str:
    """How many there are, in the program and at the peak."""
    copies = explanation.report.copies
    there = () if explanation.peak is None else explanation.peak.copies
    if there:
        text = f"{words.size(sum(copy.bytes for copy in there))} in {len(there)} at the peak"
    else:
        text = f"none at the peak; the largest takes {words.size(max(copy.bytes for copy in copies))}"
    return f"{text}; {len(copies)} in the program"


def sides(copy: LayoutCopy) -> list[str]:
    """Who made the value, and who wants it otherwise."""
    found = []
    if copy.producer is not None:
        found.append(f"made as {copy.from_shape} by {_who(copy.producer, copy.producer_op_name)}")
    if copy.consumer is None:
        found.append(f"wanted as {copy.to_shape} as a result of the program")
    else:
        found.append(f"wanted as {copy.to_shape} by {_who(copy.consumer, copy.consumer_op_name)}")
    return found


def what(copy: LayoutCopy) -> str:
    """ "copy.5 of f32[8,3]", with its source line."""
    text = f"{copy.name} of {copy.to_shape.without_layout()}"
    if copy.from_shape.dtype != copy.to_shape.dtype:
        text += f", converted from {copy.from_shape.dtype} on the way"
    if copy.source_file is not None:
        text += f"  {copy.source_file}" + ("" if copy.source_line is None else f":{copy.source_line}")
    return text


def _who(name: str, op_name: str | None) -> str:
    return name if op_name is None or op_name == name else f"{name} ({op_name})"


def lines(explanation: Explanation, *, width: int, top: int, everything: bool) -> Iterator[Line]:
    """The section."""
    yield from wrap(title("Layout copies", summary(explanation)), width)
    copies = chosen(explanation, everything=everything)
    for copy in copies[: top if everything else _SHOWN]:
        yield from wrap(
            [(words.size(copy.bytes), "bold"), (f"  {escape.visible(what(copy))}", "")], width, "  ", "      "
        )
        for side in sides(copy):
            yield from paragraph(side, width, indent=6, style="dim")
