"""Finding the few kilobytes that matter in a log of any size, in one pass and bounded memory.

A log of gigabytes holds a report or two. The bytes are searched for a few short needles at the speed of
``bytes.find``; a line with one in it is looked at, and if it may belong to a report, the stretch around it
is cut out and handed on. Small inputs are handed on whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

#: Inputs up to this size are one window.
WHOLE = 8 << 20
_CHUNK = 4 << 20
#: What is kept before and after a line that may belong to a report. A GPU allocator's dump of its chunks
#: is the longest text that follows one.
_BEFORE = 8 << 10
_AFTER = 1 << 20
_EDGE = 256 << 10
#: Hits closer together than this are one.
_STRIDE = 64 << 10
#: A window is handed on at the latest when it is this large; a report across its end is told in two parts.
_MAX_WINDOW = 16 << 20
#: A line longer than this is taken in pieces.
_MAX_LINE = 16 << 20

# Every message of a failure holds one of these, in one of its lines at least. Long ones are found faster.
_NEEDLES = (
    b"emory",
    b"esource exhausted",
    b"RESOURCE_EXHAUSTED",
    b"XLA::TPU program",
    b"scoped vmem",
    b"incompatible size",
    b"allocation_size_words",
    b"temp_size_in_bytes",
)
#: What makes a line worth a look.
RELEVANT = re.compile(
    rb"out[ _]of[ _]memory|resource.?exhausted|memory (?:space|usage report|use below|size)|exceed|allocat"
    rb"|not possible|device memory|XLA::TPU|OOM|vmem|incompatible size|size_in_bytes",
    re.IGNORECASE,
)


class Window(NamedTuple):
    """A stretch of whole lines; ``first_line`` is the 1-based number of its first."""

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
    carry = first
    read = len(first)
    while True:
        cut = max(carry.rfind(b"\n"), carry.rfind(b"\r")) + 1
        if cut or len(carry) > _MAX_LINE:
            cut = cut or len(carry)
            yield carry[:cut]
            carry = carry[cut:]
        more = stream.read(_CHUNK)
        if not more:
            break
        read += len(more)
        if progress is not None:
            progress(read)
        carry += more
    if carry:
        yield carry


def _search(chunks: Iterator[bytes]) -> Iterator[Window]:
    line = 1  # the number of the chunk's first line
    opened: list[bytes] = []  # the window that is being cut out
    first_line = 1
    until = _EDGE  # how far the open window reaches, from the chunk's start
    for chunk, is_last in _with_last(chunks):
        end = 0
        for start, stop in _spans(chunk, until, is_last):
            start = 0 if start <= 0 else max(end, chunk.rfind(b"\n", 0, start) + 1)
            until = stop
            end = len(chunk) if stop >= len(chunk) else chunk.find(b"\n", stop) + 1 or len(chunk)
            if opened and start:
                yield Window(first_line, b"".join(opened))
                opened = []
            if not opened:
                first_line = line + chunk.count(b"\n", 0, start)
            opened.append(chunk[start:end])
        if opened and (end < len(chunk) or sum(map(len, opened)) > _MAX_WINDOW):
            yield Window(first_line, b"".join(opened))
            opened = []
        until = max(0, until - len(chunk))
        line += chunk.count(b"\n")
    if opened:
        yield Window(first_line, b"".join(opened))


def _spans(chunk: bytes, until: int, is_last: bool) -> list[list[int]]:
    """The parts of ``chunk`` to keep, as [start, stop) in order; ``stop`` may lie beyond the chunk."""
    spans = [[0, until]] if until > 0 else []
    wanted = [(hit - _BEFORE, hit + _AFTER) for hit in _hits(chunk)]
    if is_last:
        wanted.append((len(chunk) - _EDGE, len(chunk)))
    for start, stop in wanted:
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], stop)
        else:
            spans.append([start, stop])
    return spans


def _hits(chunk: bytes) -> list[int]:
    """Where lines begin to be relevant; one of many close together stands for all."""
    hits: list[int] = []
    for needle in _NEEDLES:
        at = chunk.find(needle)
        while at >= 0:
            start = chunk.rfind(b"\n", 0, at) + 1
            stop = chunk.find(b"\n", at)
            stop = len(chunk) if stop < 0 else stop
            if RELEVANT.search(chunk, max(start, at - _STRIDE), min(stop, at + _STRIDE)):
                hits.append(at)
                stop = max(stop, at + _STRIDE)
            at = chunk.find(needle, stop)
    return sorted(hits)


def _with_last(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each chunk and whether it is the last one."""
    previous: bytes | None = None
    for chunk in chunks:
        if previous is not None:
            yield previous, False
        previous = chunk
    if previous is not None:
        yield previous, True
