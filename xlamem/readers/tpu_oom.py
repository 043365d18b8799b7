"""The TPU compiler's long memory report, of 2019 to today, for any memory space.

Its grammar, from libtpu 0.0.7 to 0.0.50.1 and from users' logs back to 2019::

    Ran out of memory in memory space hbm. Used A of B hbm. Exceeded hbm capacity by C.
    Total hbm usage >= T:                      rows: reserved, program, arguments
    Output size O; shares S with arguments.
    Program hbm requirement P:                 rows: reserved, global, scoped, HLO temp, overlays
      Largest program allocations in hbm:
      1. Size: ... / Operator: ... / Shape: ... / ... / ====
      Largest program arguments and outputs in hbm:

Any part can be missing: a compile that succeeded prints the totals alone, a cut log may start or end
anywhere. So the text is not parsed by lines or columns: the words that only this report uses are
searched, whatever stands between them, and each one's value is read from the text up to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from xlamem.readers.lines import RECORD, Lines
from xlamem.readers.tpu_items import Item, build
from xlamem.report import Kind, MemoryReport, Source, Space, Target, Unparsed
from xlamem.targets import infer
from xlamem.units import SIZE_PATTERN, Size, size_from, slack_of

_S = SIZE_PATTERN
_TOKEN = re.compile(
    r"""
      (?P<head>Ran\ out\ of\ memory\ in\ memory\ space\ (?P<head_space>\w+)\.)
    | (?P<module>XLA::TPU\ module\ name:\ *(?P<module_name>\S+))
    | (?P<usage>XLA::TPU\ program\ (?P<usage_space>\w+)\ usage:)
    | (?P<total>Total\ (?P<total_space>\w+)\ usage\ >=)
    | (?P<output>Output\ size\b)
    | (?P<program>Program\ (?P<program_space>\w+)\ requirement\b)
    | (?P<list>Largest\ program\ (?P<list_kind>allocations|arguments\ and\ outputs)\ in\ (?P<list_space>\w+):)
    | (?P<size>(?:(?<![\w.])(?P<number>\d{1,4})\\?\.\s*)?(?<!\w)Size:)
    | (?P<operator>(?<!\w)Operator:)
    | (?P<shape>(?<!\w)Shape:)
    | (?P<unpadded>Unpadded\ size:)
    | (?P<extra>Extra\ memory\ due\ to\ padding:)
    | (?P<tag>(?<!\w)Tag:)
    | (?P<label>XLA\ [lL]abel:)
    | (?P<type>Allocation\ type:)
    | (?P<rule>={8,})
    | (?P<stop>See\ https?://\S+|BufferAssignment\ OOM|BufferAssignment\ stats|Peak\ buffers:
        |Memory\ usage\ report:|while\ allocating\ on\ stack)
    """,
    re.VERBOSE,
)
_HEAD_FIGURES = re.compile(
    rf"Used\s+{_S}(?:\s+of\s+{_S}(?:\s+\w+)?\.?)?|Exceeded\s+\w+\s+capacity\s+by\s+{_S}\.?"
)
_ROW = re.compile(
    rf"(?<!\w)(reserved|program|arguments|global|scoped|HLO temp|overlays)\s+(?:{_S}|unknown size)"
)
_TEMP = re.compile(
    rf"\s*\(\s*([\d.]+)% utilization(?::\s*Unpadded\s*\({_S}\)\s*Padded\s*\({_S}\))?"
    rf"(?:,\s*([\d.]+)% fragmentation\s*\({_S}\))?\s*\)?"
)
_OUTPUT = re.compile(rf"\s*(?:unknown|{_S})(?:;\s*shares\s+(?:{_S}|unknown size)\s+with\s+arguments)?\.?")
_UTILIZATION = re.compile(r"\s*\(([\d.]+)% utilization\)")
_FIGURE = re.compile(rf"\s*{_S}:?")
_WORDS = re.compile(r"\w")
_USAGE = re.compile(rf"\s*{_S}\s*/\s*{_S}(?:\s*\(\d+ parameters\))?")
# Words around the head that carry no figure of their own.
_HEAD_WORDS = re.compile(
    r"(?:It should not be possible to run out of \w+ - )?[Pp]lease file a bug against XLA\.?"
    r"|(?:It should not be possible to run out of \w+ - )"
)
_SUPPRESSED = re.compile(r"Suppressing (?:OOM|crash) due to \w+")

_TOTAL_FIELD = {"reserved": "reserved", "program": "program", "arguments": "arguments"}
_PROGRAM_FIELD = {
    "reserved": "program_reserved",
    "global": "constants",
    "scoped": "scoped",
    "HLO temp": "temps",
    "overlays": "overlays",
}
_MAX_GAP_LINES = 12
#: Of a longer line only so much is looked at.
_LONG_LINE = 64 << 10
_QUOTES = ('"', "'", "`", "\\")


@dataclass
class _Draft:
    """A report while it is read."""

    start: int
    headed: bool = False
    message: str = ""
    space: str | None = None
    program: str | None = None
    spaces: dict[str, dict[str, int | float | None]] = field(default_factory=dict)
    blocks: set[str] = field(default_factory=set)
    total_space: str = "hbm"
    list_kind: str | None = None
    list_space: str | None = None
    items: list[Item] = field(default_factory=list)
    item_open: bool = False
    suppressed: bool = False
    made: bool = False
    head_end: int = 0
    stamps: int = 0
    unparsed: list[Unparsed] = field(default_factory=list)

    def row(self, space: str) -> dict[str, int | float | None]:
        return self.spaces.setdefault(space, {})

    def is_new(self, token: re.Match[str]) -> bool:
        """Whether ``token`` can only belong to another report than this one."""
        kind = token.lastgroup
        if kind == "head":
            return self.headed or bool(self.spaces or self.items)
        if kind == "module":
            return True
        if kind == "usage":
            return self.headed or bool(self.items)
        if kind in ("total", "program"):
            return bool(self.items) or _block(token) in self.blocks
        return kind == "list" and _block(token) in self.blocks

    def item_for(self, token: re.Match[str], line: int) -> Item:
        """The item that ``token`` belongs to: the open one, unless it has that field already."""
        item = self.items[-1] if self.items and self.item_open else None
        kind = token.lastgroup or ""
        # Up to 2020 on-chip lists have neither numbers nor rules: a field that comes again starts an item.
        if item is None or kind in item.seen:
            item = Item(space=self.list_space or self.space or "hbm", list_kind=self.list_kind, line=line)
            self.items.append(item)
            self.item_open = True
        item.seen.add(kind)
        if token["number"]:
            item.number = int(token["number"])
        return item


def _block(token: re.Match[str]) -> str:
    return " ".join(token.group().split())


#: What a report can begin with when its head was cut off, and a numbered item. "Size:", "Tag:" or "Allocation type:"
#: by themselves are anybody's words.
_STARTERS = frozenset({"head", "module", "usage", "total", "program", "list"})
#: What those hold: quick to search for.
_BEGIN_WORDS = ("Ran out of memory in", "XLA::TPU ", "Total ", "Program ", "Largest program ", "Size:")
#: So far before "Size:" its number can stand.
_NUMBER_BEFORE = 64


def read_tpu_oom(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every long report in ``lines``, in their order; one that stands there twice comes twice.

    ``name`` is the input's, for :class:`~xlamem.report.Source`.
    """
    text = lines.text
    draft: _Draft | None = None
    words: dict[str, int] = {}
    token = _next_beginning(text, 0, words)
    end = 0
    while token is not None:
        if draft is None and token.lastgroup not in _STARTERS and not token["number"]:
            token = _next_beginning(text, token.end(), words)
            continue
        following = _TOKEN.search(text, token.end())
        until = following.start() if following else len(text)
        if draft is not None and (token.lastgroup == "stop" or draft.is_new(token)):
            yield from _finish(draft, lines, name, end)
            draft = None
        if draft is None and (token.lastgroup in _STARTERS or token["number"]):
            draft = _Draft(start=token.start())
        if draft is not None:
            # Loggers stamp a message's first line, launchers every line. Where most of ours have none, a line
            # with one is another message's.
            draft.stamps += 1 if lines.starts_record(token.start()) else -1
            used = _read(draft, token, text[token.end() : until], lines)
            end = token.end() + max((stop for _, stop in used), default=0)
            left = _left_over(text[token.end() : until], used, lines, token.end(), draft.stamps <= 0)
            # So many lines of something else mean that the report had ended before them.
            if len(left) > _MAX_GAP_LINES:
                yield from _finish(draft, lines, name, end)
                draft = None
            elif following is not None and not draft.is_new(following):
                draft.unparsed.extend(left)
        token = following
    if draft is not None:
        yield from _finish(draft, lines, name, end)


def _next_beginning(text: str, at: int, words: dict[str, int]) -> re.Match[str] | None:
    """The next token that a report may begin with, or one before it. ``words`` is where each word stands next."""
    for word in _BEGIN_WORDS:
        if words.get(word, -1) < at:
            found = text.find(word, at)
            words[word] = len(text) if found < 0 else found
    nearest = min(words.values())
    return None if nearest == len(text) else _TOKEN.search(text, max(at, nearest - _NUMBER_BEFORE))


_Spans = list[tuple[int, int]]


def _read(draft: _Draft, token: re.Match[str], span: str, lines: Lines) -> _Spans:
    """Take what follows ``token`` into ``draft``; returns the parts of ``span`` that were understood."""
    kind = token.lastgroup
    if kind == "head":
        return _read_head(draft, token, span, lines)
    if kind == "module":
        draft.program = token["module_name"]
    elif kind == "usage":
        draft.made = True
        match = _USAGE.match(span)
        if match is not None:
            row = draft.row(token["usage_space"].lower())
            # In HBM it is the program alone, without its arguments and outputs; on-chip it is all.
            figure = "program" if token["usage_space"] == "HBM" else "used"
            row[figure], row["capacity"] = size_from(match[1], match[2]), size_from(match[3], match[4])
            return [match.span()]
    elif kind in ("total", "program"):
        draft.blocks.add(_block(token))
        if kind == "total":
            draft.total_space = token["total_space"].lower()
            return _read_block(draft.row(draft.total_space), span, "total", _TOTAL_FIELD)
        return _read_block(draft.row(token["program_space"].lower()), span, "program", _PROGRAM_FIELD)
    elif kind == "output":
        return _read_output(draft.row(draft.total_space), span)
    elif kind == "list":
        draft.blocks.add(_block(token))
        draft.list_kind, draft.list_space = token["list_kind"], token["list_space"].lower()
        draft.item_open = False
    elif kind == "rule":
        draft.item_open = False
    else:
        item = draft.item_for(token, lines.number_at(token.start()))
        ended = draft.stamps <= 0
        return item.take(kind or "", span, lambda at: ended and lines.starts_record(token.end() + at))
    return []


def _read_head(draft: _Draft, token: re.Match[str], span: str, lines: Lines) -> _Spans:
    draft.headed = True
    draft.head_end = token.end()
    draft.space = token["head_space"].lower()
    row = draft.row(draft.space)
    used: _Spans = []
    # The figures stand in the sentence itself, which ends before the first empty line.
    sentence = span.split("\n\n", 1)[0]
    for match in _HEAD_FIGURES.finditer(sentence):
        if match[1]:
            row["used"] = size_from(match[1], match[2])
            if match[3]:
                row["capacity"] = size_from(match[3], match[4])
        else:
            row["over"] = size_from(match[5], match[6])
        used.append(match.span())
    used.extend(match.span() for match in _HEAD_WORDS.finditer(sentence))
    last = max((stop for _, stop in used), default=0)
    draft.message = " ".join((token.group() + sentence[:last]).split())
    line = lines.index_at(token.start())
    draft.suppressed = _SUPPRESSED.search(lines.text, lines.starts[line], token.start()) is not None
    return used


def _read_block(row: dict[str, int | float | None], span: str, name: str, fields: dict[str, str]) -> _Spans:
    """The rows under ``Total ... usage`` or ``Program ... requirement``, whose own figure comes first."""
    used: _Spans = []
    first = _FIGURE.match(span)
    if first is not None:
        row[name] = size_from(first[1], first[2])
        used.append(first.span())
    for match in _ROW.finditer(span, first.end() if first else 0):
        if match[1] not in fields:
            continue
        if match[2]:
            row[fields[match[1]]] = size_from(match[2], match[3])
        used.append(match.span())
        if match[1] == "HLO temp":
            temp = _TEMP.match(span, match.end())
            if temp is not None:
                row["utilization"] = float(temp[1])
                if temp[2]:
                    row["unpadded"], row["padded"] = size_from(temp[2], temp[3]), size_from(temp[4], temp[5])
                if temp[6]:
                    row["fragmentation_ratio"] = float(temp[6])
                    row["fragmentation"] = size_from(temp[7], temp[8])
                used.append(temp.span())
        else:
            used.extend(m.span() for m in [_UTILIZATION.match(span, match.end())] if m)
    return used


def _read_output(row: dict[str, int | float | None], span: str) -> _Spans:
    match = _OUTPUT.match(span)
    if match is None:
        return []
    if match[1]:
        row["outputs"] = size_from(match[1], match[2])
    if match[3]:
        row["aliased"] = size_from(match[3], match[4])
    return [match.span()]


def _left_over(span: str, used: _Spans, lines: Lines, offset: int, stamped_out: bool) -> list[Unparsed]:
    """The lines of ``span`` that hold words outside the ``used`` parts, as far as one more than a report's.

    With ``stamped_out``, lines with a time stamp are other messages and none of the report's.
    """
    if not span.strip():
        return []
    pieces: list[str] = []
    at = 0
    for start, stop in sorted(used):
        pieces.append(span[at:start])
        pieces.append("\n".join(" " * len(part) for part in span[max(at, start) : stop].split("\n")))
        at = max(at, stop)
    span = "".join((*pieces, span[at:]))
    found: list[Unparsed] = []
    at = 0
    while at <= len(span) and len(found) <= _MAX_GAP_LINES:
        end = span.find("\n", at)
        end = len(span) if end < 0 else end
        # Where line ends were lost, stamps stand in the middle of the text.
        other = stamped_out and at > 0 and lines.starts_record(offset + at)
        if not other and _WORDS.search(RECORD.sub(" ", span[at : min(end, at + _LONG_LINE)])):
            found.append(Unparsed(lines.number_at(offset + at), span[at:end].strip()))
        at = end + 1
    return found


def _finish(draft: _Draft, lines: Lines, name: str, end: int) -> Iterator[MemoryReport]:
    """The report that was read, unless it holds no figure and no item."""
    main = draft.space or draft.list_space or next(iter(draft.spaces), "hbm")
    if draft.space is None and "hbm" in draft.spaces:
        main = "hbm"
    figures = any(v is not None for row in draft.spaces.values() for v in row.values())
    if not (draft.headed or draft.items or figures):
        return
    if (
        not (draft.items or figures or draft.blocks)
        and lines.text[draft.head_end : draft.head_end + 1] in _QUOTES
    ):
        return  # somebody's code that looks for these words
    spaces = [Space(name=space, **row) for space, row in draft.spaces.items()]  # type: ignore[arg-type]
    spaces.sort(key=lambda space: space.name != main)
    if not any(space.name == main for space in spaces):
        spaces.insert(0, Space(name=main))
    target = _target(spaces)
    failed = draft.headed or bool(draft.items)
    if not failed:
        spaces = [_with_used(space) for space in spaces]
    fits = False if failed else _fits(spaces)
    failed = failed or fits is False
    notes: list[str] = []
    if failed:
        kind: Kind = "hbm" if main == "hbm" else "host" if main == "host" else "onchip"
    else:
        # Totals that are part of something else, a failure that was cut on both sides for instance, say nothing.
        kind = "success" if draft.made else "other"
    if kind == "other":
        notes.append("Only totals are in the input: whether the program fits is not said.")
    if not draft.headed and draft.items:
        notes.append("The head of the report, with what was used of what, is not in the input.")
    yield MemoryReport(
        kind=kind,
        severity="error" if failed else "info" if kind == "success" else "warning",
        source=Source(name, "tpu-oom-report", lines.number_at(draft.start), lines.number_at(max(end - 1, 0))),
        message=draft.message or lines.text[draft.start : end].split("\n", 1)[0].strip(),
        backend="tpu",
        target=target,
        program=draft.program,
        fits=fits,
        spaces=tuple(spaces),
        allocations=tuple(
            build(item, target.name if target else None) for item in draft.items if item.is_complete
        ),
        truncated=draft.item_open and end >= len(lines.text.rstrip()) and "type" not in draft.items[-1].seen,
        # A program that was made all the same, and does not fit: the compiler went on.
        suppressed=draft.suppressed or (failed and not draft.headed and not draft.items),
        notes=tuple(notes),
        unparsed=tuple(draft.unparsed),
    )


def _target(spaces: list[Space]) -> Target | None:
    """The chip whose memory the report's capacity is."""
    for space in spaces:
        if space.name == "hbm" and space.capacity is not None:
            device = infer(space.capacity, 2 * slack_of(space.capacity))
            if device is not None:
                return Target(device.name, inferred=True)
    return None


def _with_used(space: Space) -> Space:
    """What a compile that succeeded uses of its memory: all that the head of a failure would count."""
    if space.used is not None or space.program is None or space.capacity is None:
        return space
    parts = [space.program, space.arguments or 0]
    if space.outputs:
        parts.append(Size(int(space.outputs) - int(space.aliased or 0), slack_of(space.outputs)))
    return replace(space, used=Size(sum(int(p) for p in parts), sum(slack_of(p) for p in parts)))


def _fits(spaces: list[Space]) -> bool | None:
    known = [s.used <= s.capacity for s in spaces if s.used is not None and s.capacity is not None]
    return all(known) if known else None
