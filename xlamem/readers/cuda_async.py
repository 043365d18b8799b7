"""XLA's cudaMallocAsync allocator: the line that it ran out, its statistics and its histogram.

::

    gpu_async_0 cuMemAllocAsync failed to allocate 1225195446464 bytes: CUDA_ERROR_OUT_OF_MEMORY: ...
     Reported by CUDA: Free memory/Total memory: 22635544576/85095874560
    Stats: Limit: ...
    Histogram of current allocation: (allocation_size_in_bytes, nb_allocation_of_that_sizes), ...;
    64, 196
    59743666176, 1

Each device has its own, written by its own thread: histograms of several are shuffled line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.allocator_stats import STATS, AllocatorStats, read_stats
from xlamem.readers.lines import Lines
from xlamem.readers.sentence import GAP, figure, sentence, source
from xlamem.report import Allocation, MemoryReport, Space

_HEAD = re.compile(r"cuMemAllocAsync\s+failed\s+to\s+allocate(?:\s+(\d{1,20})(?:\s+bytes\b|:))?")
_NAME = re.compile(r"([\w.\-]{1,80}) $")
_FREE = re.compile(r"Free\s+memory/Total\s+memory:\s*(\d{1,20})/(?:(\d{1,20})(?=[\s\\,;\"']))?")
_STATS = re.compile(STATS)
_HISTOGRAM = re.compile(r"Histogram\s+of\s+current\s+allocation:[^;\n]{0,200};?")
#: On one line the stamps of its records stand in between.
_STAMP = r"(?:[DIWEF]\d{4}\s[\d:.]{8,20}\s+\d{1,10}\s[\w./]{1,200}:\d{1,6}\]\s)?"
_NEXT_HISTOGRAM = re.compile(rf"{GAP}{_STAMP}{_HISTOGRAM.pattern}")
_PAIR = re.compile(rf"{GAP}{_STAMP}(?<!\d)(\d{{1,20}}), (\d{{1,12}})(?=[\s\\])")
#: How far behind the head its companions may stand.
_WITHIN = 1500


def read_cuda_async(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every failure of a cudaMallocAsync allocator in ``lines``. ``name`` is for the reports' source."""
    text = lines.text
    heads = list(_HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=False):
        until = following.start() if following else len(text)
        near = min(until, head.end() + _WITHIN)
        end = head.end()
        free = _FREE.search(text, end, min(until, end + 400))
        if free is not None:
            end = free.end()
        stats, end, mixed = _stats(text, end, near)
        allocations, end, shuffled = _histogram(lines, end, until)
        asked = figure(head[1], None)
        notes = []
        allocator = _NAME.search(text[max(0, head.start() - 81) : head.start()])
        if allocator is not None:
            notes.append(f"Allocator {allocator[1]}.")
        if free is not None and free[2] and asked is not None and int(free[1]) >= int(asked):
            notes.append(
                "The device reported more free memory than was asked for: it is in pieces, or just freed."
            )
        if mixed or shuffled:
            notes.append(
                "The statistics of several allocators are shuffled line by line and cannot be told apart."
            )
        yield MemoryReport(
            kind="runtime-alloc",
            severity="error",
            source=source(lines, name, "cuda-async", head.start(), end),
            message=sentence(text, head.start(), _sentence_end(text, head.end(), near)),
            backend="gpu",
            fits=False,
            spaces=(
                Space(
                    name="hbm",
                    capacity=stats.limit if stats.limit else figure(free[2], None) if free else None,
                    used=stats.in_use,
                    requested=asked,
                    free=figure(free[1], None) if free else None,
                    largest_free=stats.largest_free,
                    reserved=stats.reserved,
                    peak=stats.peak,
                ),
            ),
            allocations=() if shuffled else allocations,
            partial=shuffled or not allocations,
            notes=tuple(notes),
        )


def _sentence_end(text: str, at: int, until: int) -> int:
    line = text.find("\n", at, until)
    return min(until if line < 0 else line, at + 200)


def _stats(text: str, at: int, until: int) -> tuple[AllocatorStats, int, bool]:
    """The statistics before ``until``, and whether there are several that differ."""
    found: list[AllocatorStats] = []
    end = at
    for match in _STATS.finditer(text, at, until):
        stats, end = read_stats(text, match.end())
        found.append(stats)
    if not found:
        return AllocatorStats(), end, False
    if any(stats != found[0] for stats in found):
        return AllocatorStats(), end, True
    return found[0], end, False


def _histogram(lines: Lines, at: int, until: int) -> tuple[tuple[Allocation, ...], int, bool]:
    """The allocations by size, the offset behind them, and whether several histograms are shuffled."""
    text = lines.text
    header = _HISTOGRAM.search(text, at, min(until, at + _WITHIN))
    if header is None:
        return (), at, False
    found: list[Allocation] = []
    sizes: set[int] = set()
    shuffled = False
    end = header.end()
    while True:
        pair = _PAIR.match(text, end, until)
        if pair is None:
            other = _NEXT_HISTOGRAM.match(text, end, until)
            if other is None:
                break
            shuffled, end = True, other.end()
            continue
        size, count = int(pair[1]), int(pair[2])
        shuffled = shuffled or size in sizes
        sizes.add(size)
        found.append(
            Allocation(
                space="hbm",
                kind="other",
                bytes=size * count,
                label=f"{count} allocation{'s' if count != 1 else ''} of {size} bytes",
                provenance="computed",
                line=lines.number_at(pair.start(1)),
            )
        )
        end = pair.end()
    found.sort(key=lambda a: -int(a.bytes))
    return tuple(found), end, shuffled
