"""The pieces that what is shown on a terminal is made of, each one or more lines."""

from __future__ import annotations

from collections.abc import Iterator

from xlamem.show import escape
from xlamem.show.layout import Line, wrap

BLANK: Line = []


def title(text: str, remark: str = "") -> Line:
    """The head of a section, with a remark in a quieter style."""
    return [(escape.visible(text), "bold"), (f"  {escape.visible(remark)}" if remark else "", "dim")]


def paragraph(text: str, width: int, *, style: str = "", indent: int = 0) -> Iterator[Line]:
    """Text from anywhere, wrapped."""
    return wrap([(escape.visible(text), style)], width, " " * indent)


def bullet(text: str, width: int, *, style: str = "") -> Iterator[Line]:
    """A list item whose second line stands under the first."""
    return wrap([(escape.visible(text), style)], width, "  - ")


def code(text: str, *, indent: int) -> Iterator[Line]:
    """Code to be copied: never wrapped."""
    for line in escape.visible_lines(text):
        yield [(" " * indent, ""), (line, "cyan")]
