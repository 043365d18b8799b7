"""Lines of styled text, laid out to a width: paragraphs, list items and tables.

This is all that the answers need, and it takes a hundredth of the time in which rich is imported: a piped
answer comes at once. Only :mod:`xlamem.show.color` knows what a style looks like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

#: A run of text in one style: a style is words as rich has them, "bold red", or empty.
Span = tuple[str, str]
Line = list[Span]
#: What stands in a table: paragraphs of spans.
Cell = list[list[Span]]


class Column(NamedTuple):
    """A column of a table: its head, how wide it is, and whether it is set to the right."""

    head: str
    width: int
    right: bool = False


def text_of(lines: Iterable[Line]) -> str:
    """``lines`` as plain text."""
    return "".join(f"{''.join(text for text, _ in line).rstrip()}\n" for line in lines)


def cells(text: str) -> int:
    """How many columns of a terminal ``text`` takes: two for a wide character."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrap(spans: Sequence[Span], width: int, first: str = "", others: str | None = None) -> Iterator[Line]:
    """``spans`` as a paragraph no wider than ``width``, broken at spaces, within a word only if it must be.

    ``first`` stands before the first line, ``others`` (or as much space) before the rest.
    """
    whole = "".join(text for text, _ in spans)
    lead = first
    others = " " * cells(first) if others is None else others
    indent = max(cells(first), cells(others))
    # Beside an indent some room must remain, whatever the width.
    for start, end in _breaks(whole, max(width - indent, 10 if indent else 1)):
        yield [(lead, ""), *_cut(spans, start, end)]
        lead = others


def _breaks(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where the lines of ``text`` start and end."""
    start = 0
    while True:
        end = start + _fitting(text, start, width)
        if end >= len(text):
            yield start, len(text)
            return
        space = text.rfind(" ", start, end + 1)
        if space > start:
            yield start, space
            start = space + 1
        else:
            yield start, end
            start = end


def _fitting(text: str, start: int, width: int) -> int:
    """How many characters from ``start`` on fit; at least one, so that every loop ends."""
    if text.isascii():
        return width
    taken = 0
    for n, character in enumerate(text[start:]):
        taken += cells(character)
        if taken > width:
            return max(n, 1)
    return len(text) - start


def _cut(spans: Sequence[Span], start: int, end: int) -> Iterator[Span]:
    """What of ``spans`` lies between the offsets ``start`` and ``end``."""
    offset = 0
    for text, style in spans:
        part = text[max(start - offset, 0) : max(end - offset, 0)]
        if part:
            yield part, style
        offset += len(text)


def table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, indent: int = 0) -> Iterator[Line]:
    """A table without rules, two spaces between columns; a cell is a list of paragraphs of spans.

    Heads are shown if any column has one.
    """
    if any(column.head for column in columns):
        yield from _row(columns, [[[(column.head, "dim")]] for column in columns], indent)
    for row in rows:
        yield from _row(columns, row, indent)


def _row(columns: Sequence[Column], row: Sequence[Cell], indent: int) -> Iterator[Line]:
    laid_out = [
        [line for paragraph in cell for line in wrap(paragraph, column.width)]
        for column, cell in zip(columns, row, strict=True)
    ]
    for number in range(max(map(len, laid_out))):
        line: Line = [(" " * indent, "")]
        for column, lines in zip(columns, laid_out, strict=True):
            content = lines[number] if number < len(lines) else []
            space = (" " * max(column.width - sum(cells(text) for text, _ in content), 0), "")
            line += [space, *content] if column.right else [*content, space]
            line.append(("  ", ""))
        yield line


def widest(texts: Iterable[str]) -> int:
    """The width of the widest of ``texts``; 0 if there are none."""
    return max(map(cells, texts), default=0)
