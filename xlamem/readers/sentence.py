"""What the readers of single sentences share: figures, the sentence as printed, and where it stood."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.report import Source
from xlamem.units import Size, size_from

#: White space, or the line ends and tabs of a JSON string that were never decoded.
GAP = r"(?:\s|\\+[nrt])*"

#: Where a word begins, be it behind such a line end.
WORD = r"(?:(?<!\w)|(?<=\\[nrt]))"

_NUMBER = r"(\d{1,20}(?:\.\d{1,6})?)"
_UNIT = r"([KMGTPE](?:i?B)?|B)(?![A-Za-z0-9])"

#: A size with its unit; groups: number, unit.
SIZE = _NUMBER + _UNIT
#: A size, or plain bytes that something follows: a number at the very end may have been cut. Groups as SIZE.
FIGURE = _NUMBER + rf"(?:{_UNIT}|(?=[\s\\,;:\"')\]/]))"
#: Bytes that say so; group: number.
BYTES = r"(\d{1,20})\s+bytes\b"

_MESSAGE_LENGTH = 400
_PROGRAM = re.compile(r"executable_name='([^'\s]{1,300})'|#hlo_module=([\w.\-]{1,300})")
#: Pages break before the bracket.
_PROGRAM_BELOW = re.compile(r"\s*\[executable_name='([^'\s]{1,300})'")
_PROGRAM_WITHIN = 1000


def matches(start: re.Pattern[str], whole: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Where ``whole`` matches, one after the other.

    ``start`` is how it begins, quick to search for: without groups, each alternative starting with a letter.
    """
    end = 0
    for begin in start.finditer(text):
        match = whole.match(text, begin.start()) if begin.start() >= end else None
        if match is not None:
            end = match.end()
            yield match


def figure(number: str | None, unit: str | None) -> Size | None:
    """The size of a match of SIZE, FIGURE or BYTES; None for a fraction without a unit, and for no match."""
    if number is None or (unit is None and "." in number):
        return None
    return size_from(number, unit or "")


def sentence(text: str, start: int, end: int) -> str:
    """What stands between ``start`` and ``end``, on one line."""
    words = " ".join(re.sub(r"\\+[nrt]", " ", text[start : min(end, start + 4 * _MESSAGE_LENGTH)]).split())
    return words if len(words) <= _MESSAGE_LENGTH else words[: _MESSAGE_LENGTH - 3] + "..."


def source(lines: Lines, name: str, form: str, start: int, end: int) -> Source:
    """Where the text between the offsets ``start`` and ``end`` stood in the input called ``name``."""
    return Source(name, form, lines.number_at(start), lines.number_at(max(start, end - 1)))


def program_after(text: str, at: int) -> str | None:
    """The program that XLA names behind a message that ends ``at``, on the same line or just below."""
    line_end = text.find("\n", at)
    limit = min(len(text) if line_end < 0 else line_end, at + _PROGRAM_WITHIN)
    found = _PROGRAM.search(text, at, limit)
    if found is not None:
        return found[1] or found[2]
    found = _PROGRAM_BELOW.match(text, at)
    return found[1] if found else None


def whole_lines(lines: Lines, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Offset and text of the lines with words that stand wholly between the two offsets."""
    if start >= end:
        return
    last = lines.index_at(end)
    for index in range(lines.index_at(start) + 1, last):
        begin = lines.starts[index]
        text = lines.text[begin : lines.starts[index + 1] - 1]
        if any(char.isalnum() for char in text):
            yield begin, text.strip()
