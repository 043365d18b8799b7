"""The BFC allocator, of XLA and of TensorFlow: the line that it ran out, and the dump that may follow.

::

    Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.97GiB (rounded to 2110783744)requested by op
    BFCAllocator dump for GPU_0_bfc
    Bin (256): Total Chunks: 68, Chunks in use: 66. 17.0KiB allocated for chunks. ...
    InUse at 7f41b2000000 of size 256 next 1    (2020: InUse at 0x23 next 1 of size 256; 2017: Chunk at ...)
    Free  at 7f41b2000100 of size 1280 next 2
    2 Chunks of size 13200000000 totalling 24.59GiB
    Sum Total of in-use chunks: 29.60GiB
    Total bytes in pool: P memory_limit_: L available bytes: A curr_region_allocation_bytes_: C
    Stats: ...

The same line with ``The caller indicates that this is not a failure`` is no failure: XLA then takes a slower
way that needs less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from xlamem.readers.allocator_stats import STATS, read_stats
from xlamem.readers.bfc_failure import BfcFailure, build
from xlamem.readers.lines import Lines
from xlamem.readers.sentence import FIGURE, GAP, SIZE, WORD, figure, sentence, whole_lines
from xlamem.report import MemoryReport

_TOKEN = re.compile(
    rf"""
      (?P<ranout>(?:Allocator\s+\((?P<allocator>[^()\s]{{1,80}})\)\s+r|R)an\s+out\s+of\s+memory\s+trying\s+to\s+allocate\b)
    | (?P<dump>BFCAllocator\s+dump\s+for\s+(?P<dumped>[\w.\-/:]{{1,80}}))
    | (?P<bin>{WORD}Bin\s+\(\d{{1,20}}\):)
    | (?P<state>\|\s*Requested\s+Size:)
    | (?P<binfor>{WORD}Bin\s+for\b)
    | (?P<region>Next\s+region\s+of\s+size\b)
    | (?P<chunk>{WORD}(?P<use>InUse|Free|Chunk)\s+at\s+(?:0x)?[0-9a-fA-F]{{1,16}}\s+)
    | (?P<group>(?:(?<![\w.])|(?<=\\[nrt]))(?P<count>\d{{1,12}})\s+Chunks\s+of\s+size\s+)
    | (?P<sum>Sum\s+Total\s+of\s+in-use\s+chunks:)
    | (?P<pool>(?:total_region_allocated_bytes_|Total\s+(?:bytes|size)\s+in\s+pool):)
    | (?P<stats>{STATS})
    """,
    re.VERBOSE,
)

_ASKED = re.compile(rf"\s+{SIZE}")
_ROUNDED = re.compile(r"\s*\(rounded\s+to\s+(\d{1,20}(?:\.\d{1,6})?)([KMGTPE](?:i?B)?|B)?\)")
_OP = re.compile(r"\s*requested\s+by\s+op\b *([^\s\\]{1,300})?")
_BENIGN = re.compile(
    r"\s*(?:with\s+freed_by_count=?\d*)?\.?\s*The\s+caller\s+indicates\s+that\s+this\s+is\s+not\s+a\s+failure|"
    r"\s*with\s+freed_by_count"
)
_FAILED = re.compile(
    r"\.?\s*(?:See\s+logs\s+for|\(rounded|requested\s+by|Current\s+allocation|If\s+the\s+cause)"
)
_CHUNK_SIZE = re.compile(rf"(?:by\s+op\s.{{0,300}}?|next\s+\d{{1,20}}\s+)?of\s+size\s+{FIGURE}")
_GROUP_SIZE = re.compile(rf"{FIGURE}\s+totalling\s+{SIZE}")
_ONE_SIZE = re.compile(rf"\s+{SIZE}")
_POOL = re.compile(
    rf"{GAP}{FIGURE}{GAP}memory_limit_:{GAP}{FIGURE}(?:{GAP}available\s+(?:bytes|size):{GAP}{FIGURE})?"
)
#: What a failure can begin with, or nearly: quick to search for, as each alternative starts with a letter.
_START = re.compile(
    r"ran\s+out\s+of\s+memory\s+trying|Ran\s+out\s+of\s+memory\s+trying|BFCAllocator\s+dump|Chunks\s+of\s+size"
    r"|Sum\s+Total\s+of|Stats:"
)
_LEAD = 120
#: How far apart two tokens of one failure can be.
_REACH = 20_000
_MAX_GAP_LINES = 12
_WITHIN = 1500


def _takes(draft: BfcFailure, token: re.Match[str]) -> bool:
    """Whether ``token`` belongs to ``draft``, rather than to the next failure."""
    kind = token.lastgroup or ""
    if draft.benign:
        return False
    if kind == "ranout":
        # Until 2017 the dump came first, and its allocator had no name.
        return "stats" in draft.seen and not draft.message and token["allocator"] is None
    if "stats" in draft.seen:
        return False
    if kind == "dump":
        return "dump" not in draft.seen and not draft.groups and draft.allocator in (None, token["dumped"])
    if kind in ("sum", "pool"):
        return kind not in draft.seen
    return not (kind in ("bin", "chunk") and "sum" in draft.seen)


def read_bfc(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every failure of a BFC allocator in ``lines``, with its dump where one follows.

    Lines that say the same and are no failure come once, with how often. ``name`` is the input's, for
    :class:`~xlamem.report.Source`.
    """
    text = lines.text
    harmless: dict[tuple[str | None, int | None], MemoryReport] = {}
    draft: BfcFailure | None = None
    at = 0
    while True:
        token = _next(text, at, draft is not None)
        if token is None and draft is None:
            break
        if token is None or (draft is not None and not (_takes(draft, token) and _near(draft, token, lines))):
            assert draft is not None
            yield from _finish(draft, lines, name, harmless)
            draft = None
            continue
        at, kind = token.end(), token.lastgroup or ""
        if kind == "stats" and "cuMemAllocAsync" in text[max(0, token.start() - _WITHIN) : token.start()]:
            continue  # another allocator's, read by cuda_async.py
        if draft is None:
            if kind not in ("ranout", "dump", "group", "sum", "stats"):
                continue
            draft = BfcFailure(token.start(), token.end())
        draft.seen.add(kind)
        _read(draft, token, lines)
        at = max(at, draft.end)
    yield from harmless.values()


def _next(text: str, at: int, inside: bool) -> re.Match[str] | None:
    """The next token; outside a failure only near the words that one can begin with."""
    if inside:
        return _TOKEN.search(text, at, at + _REACH)
    for start in _START.finditer(text, at):
        # The token may begin before those words, and must not end before them.
        token = _TOKEN.search(text, max(at, start.start() - _LEAD), start.end() + _LEAD)
        while token is not None and token.end() < start.end():
            token = _TOKEN.search(text, token.end(), start.end() + _LEAD)
        if token is not None:
            return token
    return None


def _near(draft: BfcFailure, token: re.Match[str], lines: Lines) -> bool:
    gap = islice(whole_lines(lines, draft.end, token.start()), _MAX_GAP_LINES + 1)
    return sum(1 for _ in gap) <= _MAX_GAP_LINES


def _read(draft: BfcFailure, token: re.Match[str], lines: Lines) -> None:
    """Take what follows ``token`` into ``draft``."""
    text, at = lines.text, token.end()
    kind = token.lastgroup
    draft.end = at
    match: re.Match[str] | None
    if kind == "ranout":
        _read_ran_out(draft, token, text)
    elif kind == "dump":
        draft.allocator = token["dumped"]
    elif kind == "chunk":
        match = _CHUNK_SIZE.match(text, at)
        size = figure(match[1], match[2]) if match else None
        if match is not None and size is not None:
            draft.end = match.end()
            if token["use"] == "Free":
                draft.free.append(size)
            else:
                draft.in_use[size] += 1
    elif kind == "group":
        match = _GROUP_SIZE.match(text, at)
        if match is not None:
            each, together = figure(match[1], match[2]), figure(match[3], match[4])
            if each is not None and together is not None:
                draft.groups.append((int(token["count"]), each, together, lines.number_at(token.start())))
            draft.end = match.end()
    elif kind in ("sum", "binfor"):
        match = _ONE_SIZE.match(text, at)
        if match is not None:
            draft.end = match.end()
            if kind == "sum":
                draft.total = figure(match[1], match[2])
            elif draft.asked is None:
                draft.asked = figure(match[1], match[2])
    elif kind == "pool":
        match = _POOL.match(text, at)
        if match is not None:
            draft.pool, draft.limit = figure(match[1], match[2]), figure(match[3], match[4])
            draft.available = figure(match[5], match[6])
            draft.end = match.end()
    elif kind == "stats":
        draft.stats, draft.end = read_stats(text, at)


def _read_ran_out(draft: BfcFailure, token: re.Match[str], text: str) -> None:
    draft.allocator = token["allocator"]
    asked = _ASKED.match(text, draft.end)
    if asked is not None:
        draft.asked, draft.end = figure(asked[1], asked[2]), asked.end()
    draft.certain = _FAILED.match(text, draft.end) is not None
    benign = _BENIGN.match(text, draft.end)
    if benign is not None:
        draft.benign, draft.end = True, benign.end()
    rounded = _ROUNDED.match(text, draft.end)
    if rounded is not None:
        draft.rounded, draft.end = figure(rounded[1], rounded[2]), rounded.end()
    op = _OP.match(text, draft.end)
    if op is not None:
        draft.op, draft.end = op[1], op.end()
    draft.message = sentence(text, token.start(), draft.end)


def _finish(
    draft: BfcFailure,
    lines: Lines,
    name: str,
    harmless: dict[tuple[str | None, int | None], MemoryReport],
) -> Iterator[MemoryReport]:
    """The report that was read; one that is no failure goes to ``harmless``, where equal ones are counted."""
    report = build(draft, lines, name)
    if not draft.benign:
        yield report
        return
    key = (draft.allocator, None if draft.asked is None else int(draft.asked))
    earlier = harmless.get(key)
    harmless[key] = replace(earlier, times=earlier.times + 1) if earlier else report
