"""What users' tools put in front of, into and between the lines of a log, taken away again.

A report reaches us through glog, Python's logging, Ray, Docker, JSON loggers, mail and chat. None of them
changes its words, so the readers look for words; this module only removes what would stand between
them, and remembers the line of the input that each character came from.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_DATE = r"(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d)"

#: A record: what a logger writes before the first line of a message, with a time in it.
RECORD = re.compile(
    rf"""(?:
      [DIWEF]\d{{4}}\ {_CLOCK}\s+\d+\ [^\s\]]+:\d+\]\ ?                      # glog
    | [DIWEF]0000\ 00:00:\d+\.\d+\s+\d+(?:\ [^\s\]]+:\d+\])?\ ?                # glog with the epoch
    | {_DATE}\ {_CLOCK}:\ [DIWEF]\s+(?:\d+\ )?[^\s\]]+:\d+\]\ ?              # TensorFlow
    | (?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\ {_DATE}\ {_CLOCK}\ (?:\[[^\]\s]+:\d+\]\ )?
    | \[?{_DATE}[T\ ]{_CLOCK}(?:Z|\ ?[+-]\d\d:?\d\d)?\]?(?:\s-\s|[:,\s])\s*        # ISO time
    | [A-Z][a-z]{{2}}\ [\ \d]\d\ {_CLOCK}\ \S+\ [^\s:\[]+(?:\[\d+\])?:\ ?      # syslog
    | \[\d+\.\d+\]\ ?                                                       # kernel or docker seconds
    )""",
    re.VERBOSE,
)
# A column: what a launcher writes before every line, whatever is in it. A named group is who speaks.
_COLUMN = re.compile(
    r"""(?:
      \((?P<process>[^()\n]{0,60}\bpid=\d+[^()\n]{0,60})\)\ ?                 # Ray, vLLM
    | (?P<service>[\w.\-]{1,60})\s*\|\ ?                                     # docker compose
    | (?:stdout|stderr)\ [FP](?:\ |$)                                        # Kubernetes
    | >\ ?                                                                   # mail
    | E\ {3}                                                                # pytest
    | \[[\w./\-]{1,60}\.\w{1,4}:\d+\]:?\ (?!=)                             # [core.py:12]
    | \[(?P<label>[\w./:\ ,=\-]{1,60})\]:?\ (?!=)                            # [rank 3], [pod/a/b]
    | (?P<rank>\d{1,5}):(?:\ |$)                                             # srun -l
    | (?P<worker>(?:host|worker|rank|node|task|process|replica|proc|slice|w)[-_\ ]?\d+)\ ?[:|]\ ?
    | (?P<host>[a-z][a-z0-9]*(?:-[a-z0-9]+)+):(?:\ |$)                       # host-name-w-0:
    | (?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?::[\w.]+:|:\s|\s-\s|\ (?=[A-Z\[(]))\ ?
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\].*$")

# The status payload that libtpu appends repeats the head of the report with escaped line ends. A
# C-escaped string: no quote in it stands without a backslash.
_PAYLOAD = re.compile(r"\[type\.googleapis\.com/[^\s='\"]{0,200}=\\?'(?:[^'\\\n]|\\[^\n])*(?:'\])?")

# Words that start a line of a report. An escaped line end before one of them was a line end.
_STARTERS = (
    r"(?:Total \w+ usage|Program \w+ requirement|Largest program|Output size|\d+\. Size:|Size:|Shape:"
    r"|Operator:|XLA [Ll]abel:|Allocation type:|Unpadded size:|reserved |HLO temp|BufferAssignment"
    r"|Peak buffers:|Buffer \d+:|Memory Space:|Total bytes|parameter allocation|=====)"
)
_ESCAPED_END = re.compile(r"\\[nrt]\s*" + _STARTERS)
# The message of a line that is a JSON object, as Docker and cloud loggers write them; it may be cut.
_JSON_MESSAGE = re.compile(r'"(?:log|message|msg|text|line|textPayload)"\s*:\s*"((?:[^"\\]|\\.)*)')
_JSON_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_JSON_CONTROL = {"n": "\n", "t": "\t", "r": "\n", "b": "", "f": "\n"}

_UNESCAPE = re.compile(r"\\+(?:r\\+n|n|r)")
_UNESCAPE_REST = re.compile(r'\\+(["t/])')


class Lines(NamedTuple):
    """Text without its prefixes. ``numbers[i]`` is the 1-based line of the input that line ``i`` came from,
    ``records[i]`` whether a logger's time stamp stood before it, ``who[i]`` the rank, host or process that a
    launcher named before it ("" if none did), ``starts[i]`` its offset in ``text``."""

    text: str
    starts: tuple[int, ...]
    numbers: tuple[int, ...]
    records: tuple[bool, ...]
    who: tuple[str, ...]

    @classmethod
    def of(cls, kept: list[str], numbers: list[int], records: list[bool], who: list[str]) -> Lines:
        """The lines ``kept``, with where each came from."""
        return cls("\n".join(kept), _starts(kept), tuple(numbers), tuple(records), tuple(who))

    def joined(self, width: int) -> Lines:
        """With lines that were broken at ``width`` before something was put in front of each joined again."""
        texts = self.text.split("\n")
        parts: list[list[int]] = [[]]
        for at, text in enumerate(texts):
            parts[-1].append(at)
            if len(text) < width:
                parts.append([])
        parts = [part for part in parts if part]
        return Lines.of(
            ["".join(texts[at] for at in part) for part in parts],
            [self.numbers[part[0]] for part in parts],
            [self.records[part[0]] for part in parts],
            [self.who[part[0]] for part in parts],
        )

    def by_speaker(self) -> list[Lines]:
        """Each speaker's lines by themselves: hosts and ranks write over each other, line by line.

        Lines that name nobody are somebody's own where most lines name someone, as launchers do it; otherwise
        they go on with what the last speaker said. One speaker, or none, is no reason to part anything.
        """
        texts = self.text.split("\n")
        named = sum(1 for who in self.who if who)
        if len(set(self.who) - {""}) < 2:
            return [self]
        launched = 2 * named > sum(1 for text in texts if text)
        parts: dict[str, list[int]] = {}
        last = ""
        for at, who in enumerate(self.who):
            last = who or ("" if launched else last)
            parts.setdefault(last, []).append(at)
        return [
            Lines.of(
                [texts[at] for at in part],
                [self.numbers[at] for at in part],
                [self.records[at] for at in part],
                [self.who[at] for at in part],
            )
            for part in parts.values()
        ]

    def index_at(self, offset: int) -> int:
        """The index of the line that holds ``offset``."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def number_at(self, offset: int) -> int:
        """The 1-based line of the input that ``offset`` came from."""
        return self.numbers[self.index_at(offset)] if self.numbers else 1

    def starts_record(self, offset: int) -> bool:
        """Whether a logger's time stamp stood before the line that holds ``offset``."""
        return self.records[self.index_at(offset)]


def strip_prefix(line: str) -> tuple[str, bool, str]:
    """``line`` without the columns and time stamps before it, whether a time stamp was among them, and who
    speaks, as the columns name it."""
    record = False
    who = ""
    at = 0
    for _ in range(8):
        match = RECORD.match(line, at)
        if match is not None:
            record = True
        else:
            match = _COLUMN.match(line, at)
        if match is None or match.end() == at:
            break
        if match.re is _COLUMN and match.lastgroup and not who:
            who = match[match.lastgroup]
        at = match.end()
    return line[at:], record, who


def _json_lines(line: str) -> list[str]:
    """The message of a line that is a JSON object, itself perhaps one again; any other line as it is."""
    for _ in range(3):
        found = _JSON_MESSAGE.search(line) if line.startswith("{") else None
        if found is None:
            break
        line = _JSON_ESCAPE.sub(
            lambda m: chr(int(m[1], 16)) if m[1] else _JSON_CONTROL.get(m[2], m[2]), found[1]
        ).rstrip("\n")
    return line.split("\n")


def _unescape(line: str) -> list[str]:
    """The lines of a JSON string or a repr: those whose line ends were written as ``\\n``."""
    if "\\" not in line or not _ESCAPED_END.search(line):
        return [line]
    pieces = _UNESCAPE.split(line)
    return [_UNESCAPE_REST.sub(lambda m: "\t" if m[1] == "t" else m[1], piece) for piece in pieces]


_LINE_END = re.compile(r"\r\n|\n|\r")


def normalise(text: str, first_line: int = 1, width: int | None = None, ends: bool = False) -> Lines:
    """Strip ``text`` line by line.

    Args:
        text: what was read.
        first_line: the number of its first line in the input.
        width: join lines that were broken at this width, see :func:`wrap_width`.
        ends: keep the white space at the lines' ends, which counts where they are joined afterwards.
    """
    kept: list[str] = []
    numbers: list[int] = []
    records: list[bool] = []
    speakers: list[str] = []
    # splitlines() would also split at characters that strangers' op names may hold; only these end a line.
    raw_lines = enumerate(_LINE_END.split(text), first_line)
    for number, raw in raw_lines if width is None else _joined(raw_lines, width):
        line = raw
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        if "[type.googleapis.com/" in line:
            line = _PAYLOAD.sub("", line)
        if "[repeated " in line:
            line = _REPEATED.sub("", line)
        pieces = _json_lines(line) if line.startswith("{") else [line]
        speaker = ""
        for piece in (part for whole in pieces for part in _unescape(whole)):
            stripped, record, who = strip_prefix(piece)
            speaker = who or speaker  # what was one line of the input was one's
            if "**" in stripped:  # Markdown's bold; HLO has no such token
                stripped = stripped.replace("**", "")
            if not ends:
                stripped = stripped.rstrip()
            kept.append(stripped.replace("\t", " ").replace("\xa0", " "))
            numbers.append(number)
            records.append(record)
            speakers.append(speaker)
    return Lines.of(kept, numbers, records, speakers)


#: Lines this short are not broken by anybody.
_TAIL = 40


def wrap_width(text: str) -> int | None:
    """The width at which ``text`` was broken in mid-word, as terminals and chats do; None if it was not.

    That is the length of its longest lines, if several different ones have it.
    """
    lines = _LINE_END.split(text)
    width = max(map(len, lines), default=0)
    # The same line from many hosts is long as often, and tells nothing.
    tails = {line[-_TAIL:] for line in lines if len(line) == width}
    return width if width >= _TAIL and len(tails) >= 2 else None


def _joined(lines: Iterable[tuple[int, str]], width: int) -> Iterator[tuple[int, str]]:
    whole: tuple[int, str] | None = None
    for number, line in lines:
        whole = (number, line) if whole is None else (whole[0], whole[1] + line)
        if len(line) < width:
            yield whole
            whole = None
    if whole is not None:
        yield whole


def _starts(lines: list[str]) -> tuple[int, ...]:
    offsets: list[int] = []
    offset = 0
    for line in lines:
        offsets.append(offset)
        offset += len(line) + 1
    return tuple(offsets)
