"""Finding the few kilobytes that matter in a log of any size, in one pass and bounded memory.

A log of gigabytes holds a report or two. The bytes are searched for phrases of the messages at the speed of
``bytes.find``; the stretch around each is cut out and handed on. Small inputs are handed on whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

#: Inputs up to this size are one window.
WHOLE = 512 << 10
_CHUNK = 256 << 10
#: What is kept before and after a phrase.
_BEFORE = 8 << 10
_AFTER = 256 << 10
_EDGE = 128 << 10
#: Phrases closer together than this are one.
_STRIDE = 64 << 10
#: A window goes on by so much while it ends in the rows of a report.
_STEP = 64 << 10
#: A window is handed on at the latest when it is this large; a report across its end is told in two parts.
_MAX_WINDOW = 16 << 20
#: A line longer than this is taken in pieces, and a window does not begin or end farther from its phrase for the
#: sake of a whole line: an instruction can stand in the middle of a message, with all of its configuration.
_MAX_LINE = 16 << 20
_WHOLE_LINE = 8 << 20
#: At the ends of the input nothing is known to be in a line.
_EDGE_LINE = 64 << 10

# Each form of message holds one of these, in any case of its first letter.
_PHRASES = (
    b"ut of memory",
    b"UT_OF_MEMORY",
    b"OutOfMemory",
    b"RESOURCE_EXHAUSTED",
    b"esource exhausted",
    b"ResourceExhausted",
    b"emory space ",
    b"emory Space: ",
    b"emory usage report",
    b"reduce memory use below",
    b"ematerialization limit ",
    b"ematerialization hbm reduction",
    b"exceed memory",
    b"XLA::TPU ",
    b"Hbm usage",
    b"Aborting compilation early",
    b"Largest program a",
    b"Unpadded size:",
    b"scoped vmem",
    b"Scoped allocation with size",
    b"offset upper bound",
    b"incompatible size",
    b"allocation_size_words",
    b"_size_in_bytes",
    b"Attempting to ",
    b"ould not allocate ",
    b"ailed to alloc",
    b"trying to allocate",
    b"BufferAssignment OOM",
    b"BufferAssignment stats",
    b"Peak buffers:",
    b"BFCAllocator dump",
    b" Chunks of size",
    b"Sum Total of in-use",
    b"cuMemAllocAsync",
    b"OOM when allocating",
    b"Total bytes used: ",
    b"input/output arguments",
    b"NCCL WARN",
    b"hared memory size limit",
    b"hared memory requested",
    b"of resource: shared",
)
# After so many bytes only chunks that hold one of these are searched for the phrases: each is a pass over gigabytes.
# They stand in or near what ends a run; a sentence without them is found in the first megabytes and at the end.
_ALL_UNTIL = 8 << 20
_NEEDLES = (b"RESOURCE_EXHAUSTED", b"XLA::TPU ", b"emory")
#: Rows of which a report can have more than follow its phrases closely.
_ROW = re.compile(
    rb"(?:InUse|Free|Chunk)\s+at |Bin \(|Chunks of size|Allocation type:|XLA [Ll]abel:|Unpadded size:"
    rb"|%\); +[\d.]+ ?[KMGTPE]?i?B;"
)
_ROWS_END = 8 << 10


class Window(NamedTuple):
    """A stretch of lines, whole unless they are very long; ``first_line`` is the 1-based number of its first."""

    first_line: int
    data: bytes


def windows(stream: IO[bytes], progress: Callable[[int], None] | None = None) -> Iterator[Window]:
    """The stretches of ``stream`` that may hold a report, in order and without overlap.

    The beginning and the end of a large input are always among them: a log that was rotated or cut may
    hold half a report there. ``progress`` is called with the number of bytes read so far.
    """
    data = stream.read(WHOLE + 1)
    if progress is not None:
        progress(len(data))
    if len(data) <= WHOLE:
        if data:
            yield Window(1, data)
        return
    yield from _search(_chunks(data, stream, progress))


def _chunks(first: bytes, stream: IO[bytes], progress: Callable[[int], None] | None) -> Iterator[bytes]:
    """The stream in pieces that end with a line's end."""
    carried: list[bytes] = []  # without a line's end
    size = 0
    read = len(first)
    more = first
    while more:
        cut = max(more.rfind(b"\n"), more.rfind(b"\r")) + 1
        if not cut and size + len(more) > _MAX_LINE:
            cut = len(more)
        if cut:
            yield b"".join((*carried, more[:cut]))
            carried = [more[cut:]]
            size = len(more) - cut
        else:
            carried.append(more)
            size += len(more)
        more = stream.read(_CHUNK)
        read += len(more)
        if more and progress is not None:
            progress(read)
    if size:
        yield b"".join(carried)


def _search(chunks: Iterator[bytes]) -> Iterator[Window]:
    line = 1  # the number of the text's first line
    read = 0
    before = b""  # the end of what came before the chunk: a window may begin in it
    opened: list[bytes] = []  # the window that is being cut out
    first_line = 1
    until = _EDGE  # how far the open window reaches, from the text's start
    for chunk, is_last in _with_last(chunks):
        hits = _hits(chunk, read < _ALL_UNTIL)
        read += len(chunk)
        if not (hits or opened or until or is_last) and len(chunk) > _EDGE:
            kept = chunk.find(b"\n", len(chunk) - _EDGE) + 1 or len(chunk)
            line += before.count(b"\n") + chunk.count(b"\n", 0, kept)
            before = chunk[kept:]
            continue
        text = before + chunk
        end = counted = reach = 0
        for start, stop, whole in _spans(text, [len(before) + hit for hit in hits], until, is_last):
            stop = _with_rows(text, stop)
            if stop <= reach:
                continue
            reach = stop
            start = _line_start(text, end, start, whole)
            if opened and start > end:
                yield Window(first_line, b"".join(opened))
                opened = []
            if not opened:
                line += text.count(b"\n", counted, start)
                counted = start
                first_line = line
            end = _line_end(text, max(stop, start), whole)
            opened.append(text[start:end])
        if opened and (end < len(text) or sum(map(len, opened)) > _MAX_WINDOW):
            yield Window(first_line, b"".join(opened))
            opened = []
        until = max(0, reach - len(text))
        # What is in no window yet, as far as the next one may need it.
        kept = max(end, text.find(b"\n", max(0, len(text) - _EDGE)) + 1 or len(text))
        before = text[kept:]
        line += text.count(b"\n", counted, kept)
    if opened:
        yield Window(first_line, b"".join(opened))


def _line_start(text: bytes, end: int, start: int, whole: int) -> int:
    """Where the line with ``start`` begins, not before ``end``; ``start`` itself if the line is too long."""
    if start <= end:
        return end
    at = text.rfind(b"\n", max(end, start - whole), start) + 1
    return at or (end if start - end <= whole else start)


def _line_end(text: bytes, stop: int, whole: int) -> int:
    """Where the line with ``stop`` ends; ``stop`` itself if the line is too long."""
    if stop >= len(text):
        return len(text)
    return text.find(b"\n", stop, stop + whole) + 1 or (len(text) if len(text) - stop <= whole else stop)


def _with_rows(text: bytes, stop: int) -> int:
    """``stop``, or where the rows end that it lies in; it may lie beyond the text."""
    while stop > 0 and _ROW.search(text, max(0, min(stop, len(text)) - _ROWS_END), stop):
        if stop >= len(text):
            return max(stop, len(text) + _ROWS_END)
        stop += _STEP
    return stop


def _spans(text: bytes, hits: list[int], until: int, is_last: bool) -> list[tuple[int, int, int]]:
    """The parts of ``text`` to keep, in order: (start, stop, how far they may go on to the ends of a line);
    ``stop`` may lie beyond the text."""
    spans = [(0, until, _EDGE_LINE)] if until > 0 else []
    wanted = [(hit - _BEFORE, hit + _AFTER, _WHOLE_LINE) for hit in hits]
    if is_last:
        wanted.append((len(text) - _EDGE, len(text), _EDGE_LINE))
    for start, stop, whole in wanted:
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], stop), max(spans[-1][2], whole))
        else:
            spans.append((max(0, start), stop, whole))
    return spans


def _hits(text: bytes, search_all: bool) -> list[int]:
    """Where phrases stand; one of many close together stands for all."""
    if not (search_all or any(_holds(text, needle) for needle in _NEEDLES)):
        return []
    hits: set[int] = set()
    for phrase in _PHRASES:
        at = text.find(phrase)
        while at >= 0:
            hits.add(at)
            at = text.find(phrase, at + _STRIDE)
    return sorted(hits)


def _holds(text: bytes, needle: bytes) -> bool:
    """Whether ``needle`` is in ``text``: backwards a needle is found faster by a rare first letter."""
    return (text.rfind(needle) if needle[:1].isupper() else text.find(needle)) >= 0


def _with_last(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each chunk and whether it is the last one."""
    previous: bytes | None = None
    for chunk in chunks:
        if previous is not None:
            yield previous, False
        previous = chunk
    if previous is not None:
        yield previous, True
