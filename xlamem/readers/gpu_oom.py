"""The report of a program that ran out of a GPU's memory while its buffers were allocated.

The sentence alone is what jaxlib prints since 2025; before, the whole buffer assignment follows::

    Out of memory while trying to allocate 4770354232 bytes.
    Failed to allocate request for 4.44GiB (4770354232B) on device ordinal 0
    Out of memory while trying to allocate 4.44GiB with allocator GPU_0_bfc on device 0. [executable_name='f']

    BufferAssignment OOM Debugging.
    BufferAssignment stats:                    rows: parameter, constant, maybe_live_out, temp, total
    Peak buffers:
        Buffer 1:
            Size: ... / Operator: ... / Entry Parameter Subshape: ... or XLA Label: ... and Shape: ... / ====

As in :mod:`xlamem.readers.tpu_oom` the words are searched, whatever stands between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from xlamem.circumstances import failed_buffer_note, failed_row_note
from xlamem.readers.circumstances import circumstances
from xlamem.readers.gpu_buffers import build_buffer
from xlamem.readers.lines import Lines
from xlamem.readers.sentence import BYTES, SIZE, figure, program_after, sentence, source, whole_lines
from xlamem.readers.tpu_items import Item
from xlamem.report import MemoryReport, Space, Unparsed
from xlamem.units import Size

_TOKEN = re.compile(
    r"""
      (?P<head>Out\s+of\s+(?P<host>host\s+)?memory\s+while\s+trying\s+to\s+allocate\b
        |Failed\s+to\s+allocate\s+request\s+for\b)
    | (?P<debug>BufferAssignment\s+OOM\s+Debugging)
    | (?P<stats>BufferAssignment\s+stats:)
    | (?P<row>(?<!\w)(?P<row_name>parameter|constant|maybe_live_out|preallocated\s+temp|total)\s+
        (?P<row_kind>allocation|fragmentation):)
    | (?P<peak>Peak\s+buffers:)
    | (?P<buffer>(?<!\w)Buffer\s+(?P<number>\d{1,4}):)
    | (?P<size>(?<!\w)(?<!Unpadded\ )Size:)
    | (?P<operator>(?<!\w)Operator:)
    | (?P<parameter>Entry\s+Parameter\s+Subshape:)
    | (?P<label>XLA\s+[lL]abel:)
    | (?P<shape>(?<!\w)Shape:)
    | (?P<rule>={8,})
    | (?P<stop>Ran\ out\ of\ memory\ in\ memory\ space|Largest\ program\ (?:allocations|arguments)
        |Memory\ usage\ report:)
    """,
    re.VERBOSE,
)
#: What a report can begin with, quick to search for: each alternative starts with a letter.
_START = re.compile(
    r"Out\s+of\s+(?:host\s+)?memory\s+while|Failed\s+to\s+allocate\s+request|BufferAssignment\s"
    r"|Peak\s+buffers:|Buffer\s+\d"
)
#: How far apart two tokens of one report can be: op names of fused instructions are long.
_REACH = 50_000
_BYTES = re.compile(rf"\s+{BYTES}\.?")
_SIZE = re.compile(rf"\s+{SIZE}(?:\s*\((\d{{1,20}})B\))?\.?")
_WHERE = re.compile(
    r"\s+(?:with\s+allocator\s+([\w.\-]+)\s+)?on\s+device\s+(?:ordinal\s+)?(\d{1,4})(?=\D)\.?"
)
_HOST_LIMIT = re.compile(
    r"\s*Please\s+set\s+the\s+environment\s+variable\s+XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB[^.\n]*\.?"
)
#: All that is left of a figure where the text ends inside it.
_CUT = re.compile(r"\s*\d{0,20}(?:\.\d{0,6})?(?:[KMGTPE]i?|\s*b[a-z]{0,4})?\s*\Z")
_VALUE = re.compile(rf"\s*{SIZE}(?:\s*\(\s*(-?\d{{1,5}}\.\d{{1,3}})%\))?")

_ROW_FIELD = {
    "parameter allocation": "arguments",
    "constant allocation": "constants",
    "maybe_live_out allocation": "outputs",
    "preallocated temp allocation": "temps",
    "preallocated temp fragmentation": "fragmentation",
    "total allocation": "total",
}
_PARTS = ("debug", "stats", "peak")
_FIELDS = {"size": "size", "operator": "operator", "parameter": "shape", "label": "label", "shape": "shape"}
_MAX_GAP_LINES = 12


@dataclass
class _Draft:
    """A report while it is read."""

    start: int
    end: int
    first_end: int
    message: str = ""
    host: bool = False
    headed: bool = False
    program: str | None = None
    figures: dict[str, Size | float | None] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    rows: set[str] = field(default_factory=set)
    items: list[Item] = field(default_factory=list)
    parameters: set[int] = field(default_factory=set)
    item_open: bool = False
    stamps: int = 0
    notes: list[str] = field(default_factory=list)
    unparsed: list[Unparsed] = field(default_factory=list)

    @property
    def listing(self) -> bool:
        return "peak" in self.parts or bool(self.items)

    def takes(self, token: re.Match[str]) -> bool:
        """Whether ``token`` belongs to this report, rather than to another one or to nobody."""
        kind = token.lastgroup or ""
        if kind in ("head", "stop"):
            return False
        if kind in _PARTS:
            return kind not in self.parts
        if kind == "row":
            return _row(token) not in self.rows and bool(self.parts)
        if kind == "buffer":
            return not self.items or (self.items[-1].number or 0) < int(token["number"])
        return self.listing


def _row(token: re.Match[str]) -> str:
    return f"{' '.join(token['row_name'].split())} {token['row_kind']}"


def read_gpu_oom(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such report in ``lines``, in their order; one that stands there twice comes twice.

    ``name`` is the input's, for :class:`~xlamem.report.Source`.
    """
    text = lines.text
    draft: _Draft | None = None
    token = _start(text, 0)
    while token is not None:
        following = _TOKEN.search(text, token.end(), token.end() + _REACH)
        until = following.start() if following else min(len(text), token.end() + _REACH)
        if draft is not None and not draft.takes(token) and _ends(draft, token):
            yield from _finish(draft, lines, name)
            draft = None
        if draft is None and token.lastgroup in ("head", "debug", "stats", "peak", "buffer"):
            draft = _Draft(token.start(), token.end(), token.end())
        if draft is not None and (token.lastgroup == "head" or draft.takes(token)):
            draft.stamps += 1 if lines.starts_record(token.start()) else -1
            if not _read(draft, token, until, lines):
                draft = None
        if draft is not None:
            left = [
                Unparsed(lines.number_at(at), line)
                for at, line in whole_lines(lines, draft.end, until)
                # Loggers stamp a message's first line, launchers every line.
                if draft.stamps > 0 or not lines.starts_record(at)
            ]
            if following is None or len(left) > _MAX_GAP_LINES:
                yield from _finish(draft, lines, name)
                draft = None
            elif draft.takes(following):
                draft.unparsed.extend(left)
        token = following if draft is not None else _start(text, token.end())


def _start(text: str, at: int) -> re.Match[str] | None:
    """The next token that a report can begin with."""
    while True:
        start = _START.search(text, at)
        if start is None:
            return None
        token = _TOKEN.match(text, start.start())
        if token is not None:
            return token
        at = start.end()


def _ends(draft: _Draft, token: re.Match[str]) -> bool:
    """Whether a token that ``draft`` does not take means that it is over; other words are only in between."""
    return token.lastgroup in ("head", "stop", "buffer", *_PARTS) or (
        token.lastgroup == "row" and bool(draft.parts)
    )


def _read(draft: _Draft, token: re.Match[str], until: int, lines: Lines) -> bool:
    """Take what follows ``token`` into ``draft``; False if the token was somebody else's words."""
    kind = token.lastgroup or ""
    span = lines.text[token.end() : until]
    draft.end = token.end()
    if kind == "head":
        return _read_head(draft, token, until, lines)
    if kind in _PARTS:
        draft.parts.add(kind)
    elif kind == "row":
        _read_row(draft, _row(token), span)
    elif kind == "buffer":
        draft.items.append(_item(draft, token, lines))
        draft.items[-1].number = int(token["number"])
        draft.item_open = True
    elif kind == "rule":
        draft.item_open = False
    else:
        ended = draft.stamps <= 0
        field_name = _FIELDS[kind]
        if not draft.item_open or field_name in draft.items[-1].seen:
            draft.items.append(_item(draft, token, lines))
            draft.item_open = True
        item = draft.items[-1]
        item.seen.add(field_name)
        if kind == "parameter":
            draft.parameters.add(id(item))
        used = item.take(field_name, span, lambda at: ended and lines.starts_record(token.end() + at))
        draft.end = token.end() + max((stop for _, stop in used), default=0)
    return True


def _item(draft: _Draft, token: re.Match[str], lines: Lines) -> Item:
    return Item(space="host" if draft.host else "hbm", list_kind=None, line=lines.number_at(token.start()))


def _read_head(draft: _Draft, token: re.Match[str], until: int, lines: Lines) -> bool:
    text = lines.text
    found = _BYTES.match(text, token.end(), until)
    if found is not None:
        asked = figure(found[1], None)
    else:
        found = _SIZE.match(text, token.end(), until)
        asked = (figure(found[3], None) or figure(found[1], found[2])) if found else None
    if found is None:
        # Without a figure these are anybody's words, unless the text was cut or the assignment follows.
        cut = _CUT.match(text, token.end()) is not None
        if not cut and not text.startswith("BufferAssignment", until):
            return False
    else:
        draft.end = found.end()
    where = _WHERE.match(text, draft.end, until)
    if where is not None:
        draft.end = where.end()
        allocator = f"Allocator {where[1]}, device" if where[1] else "Device"
        draft.notes.append(f"{allocator} {where[2]}.")
    limit = _HOST_LIMIT.match(text, draft.end, until)
    if limit is not None:
        draft.end = limit.end()
    draft.headed = True
    draft.host = token["host"] is not None
    draft.message = sentence(text, token.start(), draft.end)
    draft.program = program_after(text, draft.end)
    draft.notes.extend(circumstances(text, token.start(), min(until, draft.end)))
    if asked is not None:
        draft.figures["requested"] = asked
    return True


def _read_row(draft: _Draft, row: str, span: str) -> None:
    draft.rows.add(row)
    found = _VALUE.match(span)
    if found is None:
        return
    draft.end += found.end()
    size = figure(found[1], found[2])
    if row == "total fragmentation":
        # No field: it is the distance from the least that any assignment would need.
        draft.notes.append(f"Total fragmentation as printed: {' '.join(found.group().split())}.")
    elif row in _ROW_FIELD:
        draft.figures[_ROW_FIELD[row]] = size
        if row == "preallocated temp fragmentation" and found[3]:
            draft.figures["fragmentation_ratio"] = float(found[3])


def _finish(draft: _Draft, lines: Lines, name: str) -> Iterator[MemoryReport]:
    """The report that was read; nothing for a buffer assignment that only describes a program."""
    if not (draft.headed or "debug" in draft.parts or draft.items):
        return
    built = [(item, build_buffer(item, id(item) in draft.parameters)) for item in draft.items]
    allocations = tuple(a for _, a in built if a is not None)
    if not (draft.headed or draft.rows or allocations):
        return
    space = Space(name="host" if draft.host else "hbm", **draft.figures)  # type: ignore[arg-type]
    notes = draft.notes
    row = failed_row_note(space)
    if row is not None:
        notes.append(row)
    elif space.requested is not None:
        found = failed_buffer_note(space.requested, ((item.number, a) for item, a in built if a is not None))
        if found is not None:
            notes.append(found)
    if not draft.headed:
        notes.append("The head of the report, with what was asked for, is not in the input.")
    listed = bool(draft.parts or draft.rows or draft.items)
    yield MemoryReport(
        kind="host" if draft.host else "hbm" if listed else "runtime-alloc",
        severity="error",
        source=source(lines, name, "gpu-buffer-assignment" if listed else "gpu-oom", draft.start, draft.end),
        message=draft.message or sentence(lines.text, draft.start, draft.first_end),
        backend="gpu",
        program=draft.program,
        fits=False,
        spaces=(space,),
        allocations=allocations,
        truncated=draft.item_open and draft.end >= len(lines.text.rstrip()),
        notes=tuple(dict.fromkeys(notes)),
        unparsed=tuple(dict.fromkeys(draft.unparsed)),
    )
