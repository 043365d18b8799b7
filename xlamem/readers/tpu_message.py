"""One message of a line or a few in a TPU's log: where it stands, how far it reaches, what stands before it.

The readers of such messages look for the words that only they use and read each figure by the words next to
it, whatever stands between: a line end, another program's output, a stamp. What bounds a message is the next
message of any kind, and a length that none of them has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import SIZE, sentence, source
from xlamem.report import MemoryReport, Target
from xlamem.targets import infer
from xlamem.units import Size, size_from, slack_of

#: White space between words, or the line ends and tabs of a JSON string that were never decoded.
W = r"(?:\s|\\[nrt])+"

# What the messages of this family begin with.
_BEGINNINGS = re.compile(
    rf"Ran{W}out{W}of{W}memory|Allocation\s*\(size=|Attempting{W}to{W}(?:allocate|reserve)"
    rf"|Could{W}not{W}allocate|Aborting{W}compilation{W}early|t{W}reduce{W}memory{W}use{W}below"
    rf"|TensorCore{W}Hbm|Scoped{W}allocation{W}with"
    rf"|Traceback{W}\(most"
)
_BEFORE = 240
_CODE = re.compile(rf"(?<!\w)(E\d{{4}}):(?:(?:{W})?([A-Z][A-Za-z]{{3,60}})(?=:|\s|\\|$))?")
_NAME = re.compile(
    r"(?<!\w)((?:CompileTime|Runtime)[A-Z][A-Za-z]{1,50}?(?:Oom|Failure|Mismatch))(?![A-Za-z])"
)
_URL = re.compile(r"xla/errors/error_(\d{4})(?!\d)")
# Only whole: a name that the input's end cut short is none.
_MODULE = re.compile(rf"HLO{W}module:(?:{W})?([\w.\-]{{1,300}}?)\.(?=[\s\\\"']|$)")
_GOES_ON = re.compile(rf"Suppressing(?:{W}\w+){{1,4}}{W}due{W}to{W}\w+")


@dataclass
class Message:
    """The text around one match; ``end`` moves on with everything that was understood."""

    lines: Lines
    name: str
    head: re.Match[str]
    until: int
    end: int = field(init=False)
    start: int = field(init=False)

    def __post_init__(self) -> None:
        self.start, self.end = self.head.span()

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match behind the head, within the message."""
        found = pattern.search(self.lines.text, self.head.end(), self.until)
        if found is not None:
            self.end = max(self.end, found.end())
        return found

    def size(self, pattern: re.Pattern[str]) -> Size | None:
        """The size in the first two groups of ``pattern``, whose words stand beside it."""
        found = self.find(pattern)
        return size_from(found[1], found[2]) if found else None

    def before(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The last match shortly before the head and behind the message before this one."""
        start = self.head.start()
        begin = max(0, start - _BEFORE)
        for other in _BEGINNINGS.finditer(self.lines.text, begin, start):
            begin = other.end()
        return max(pattern.finditer(self.lines.text, begin, start), key=lambda m: m.start(), default=None)

    @property
    def cut(self) -> bool:
        """Whether the input ends where this message does."""
        return self.until >= len(self.lines.text.rstrip())

    @property
    def program(self) -> str | None:
        """The module that the message names."""
        found = self.find(_MODULE)
        return found[1] if found else None

    def notes(self) -> tuple[str, ...]:
        """The error code that XLA gives to such failures."""
        notes: list[str] = []
        code, name = self.before(_CODE), self.before(_NAME)
        if code is not None and code[2]:
            notes.append(f"Error code {code[1]} {code[2]}")
        elif code is None and name is not None:
            notes.append(f"Error code {name[1]}")
        else:
            url = _URL.search(self.lines.text, self.head.end(), self.until)
            if code is not None or url is not None:
                notes.append(f"Error code {code[1] if code else f'E{url[1]}' if url else ''}")
        return tuple(notes)

    def report(self, form: str, *, notes: tuple[str, ...] = (), **facts: Any) -> MemoryReport:
        """A report of ``facts`` with what all messages have; ``form`` is the source's."""
        facts.setdefault("severity", "error")
        facts.setdefault("backend", "tpu")
        facts.setdefault("suppressed", self.before(_GOES_ON) is not None)
        facts.setdefault("message", sentence(self.lines.text, self.start, self.end))
        return MemoryReport(
            source=source(self.lines, self.name, form, self.start, self.end),
            notes=self.notes() + notes,
            **facts,
        )


def messages(lines: Lines, name: str, head: re.Pattern[str], reach: int) -> Iterator[Message]:
    """Every match of ``head`` in ``lines``, with up to ``reach`` characters behind it."""
    for match in head.finditer(lines.text):
        limit = min(len(lines.text), match.end() + reach)
        other = _BEGINNINGS.search(lines.text, match.end(), limit)
        yield Message(lines, name, match, other.start() if other else limit)


def chip(capacity: Size | None, share: float = 1.0) -> Target | None:
    """The TPU of which ``capacity`` is the memory that programs may take, or that ``share`` of it."""
    if not capacity:
        return None
    device = infer(round(capacity / share), round(2 * slack_of(capacity) / share))
    return Target(device.name, inferred=True) if device is not None else None


#: A size, for patterns with words around it.
S = SIZE
