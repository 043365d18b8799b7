"""The GPU driver said no: to device memory, to pinned host memory, or to starting at all.

::

    failed to allocate 1.00G (1073741824 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory
    failed to allocate 154.06GiB (165425291480 bytes) from device: HIP_ERROR_OutOfMemory
    failed to alloc 2147483648 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory
    could not allocate pinned host memory of size: 2147483648
    failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: ...; total memory reported: 34089730048

An allocator that is refused asks again for nine tenths, so the first ones come in falling series, and the
program may go on: they are warnings. Nothing starts without a context: the last is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from xlamem.readers.circumstances import circumstances
from xlamem.readers.lines import Lines
from xlamem.readers.sentence import SIZE, figure, matches, sentence, source
from xlamem.report import Kind, MemoryReport, Space
from xlamem.units import Size

_REFUSED = re.compile(
    rf"""
      (?P<device>failed\s+to\s+allocate\s+{SIZE}
        (?:\s*\((?P<exact>\d{{1,20}})\s+bytes\)(?:\s+from\s+device)?|\s+from\s+device)(?::[^\n]{{0,120}})?)
    | (?P<host>failed\s+to\s+alloc(?:ate)?\s+(?P<on_host>\d{{1,20}})\s+bytes\s+on\s+host
        (?::[^\n]{{0,120}})?
      |could\s+not\s+allocate\s+pinned\s+host\s+memory\s+of\s+size:
        \s*(?P<pinned>\d{{1,20}})(?=[\s\\,;"'.]))
    | (?P<context>failed\s+call\s+to\s+(?:(?:cu|hip)DevicePrimaryCtxRetain|cuCtxCreate|cuInit):
        \s*(?:CUDA_ERROR_OUT_OF_MEMORY|HIP_ERROR_OutOfMemory|hipErrorOutOfMemory)
        (?::\s*out\s+of\s+memory)?
        (?:;\s*total\s+memory\s+reported:(?:\s*(?P<total>\d{{1,20}})(?=[\s\\,;"']))?)?)
    """,
    re.VERBOSE,
)
_START = re.compile(r"failed\s+to\s+alloc|could\s+not\s+allocate\s+pinned|failed\s+call\s+to\s")
#: An allocator backs off by a tenth at a time.
_STEP = 0.85
_ABSURD = 1 << 60


@dataclass
class _Series:
    """Refusals in a row, each as large as the one before or a little smaller."""

    place: str
    first: re.Match[str]
    asked: Size
    last: Size
    last_text: str
    end: int
    count: int = 1
    equal: int = 1

    def goes_on_with(self, place: str, asked: Size) -> bool:
        return place == self.place and self.last * _STEP <= asked <= self.last


def read_gpu_driver(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every refusal of the driver in ``lines``; a falling series of them is one.

    ``name`` is the input's, for the reports' source.
    """
    text = lines.text
    series: _Series | None = None
    for match in matches(_START, _REFUSED, text):
        place = match.lastgroup or ""
        if place == "context":
            if series is not None:
                yield _report(series, lines, name)
                series = None
            yield _context(match, lines, name)
            continue
        asked = _asked(match)
        if asked is None:
            continue
        if series is not None and series.goes_on_with(place, asked):
            series.count += 1
            series.equal += asked == series.asked
            series.last, series.last_text, series.end = asked, sentence(text, *match.span()), match.end()
            continue
        if series is not None:
            yield _report(series, lines, name)
        series = _Series(place, match, asked, asked, sentence(text, *match.span()), match.end())
    if series is not None:
        yield _report(series, lines, name)


def _asked(match: re.Match[str]) -> Size | None:
    if match["device"]:
        return figure(match["exact"], None) or figure(match[2], match[3])
    return figure(match["on_host"] or match["pinned"], None)


def _report(series: _Series, lines: Lines, name: str) -> MemoryReport:
    start, end = series.first.span()
    host = series.place == "host"
    notes = list(circumstances(lines.text, start, end))
    if series.last < series.asked:
        notes.append(
            f"{series.count} requests in a row were refused, each smaller than or like the one before. "
            f"The last: {series.last_text}"
        )
    kind: Kind = "host" if host else "runtime-alloc"
    return MemoryReport(
        kind=kind,
        severity="warning",
        source=source(lines, name, "gpu-driver", start, series.end),
        message=sentence(lines.text, start, end),
        backend="gpu",
        spaces=(Space(name="host" if host else "hbm", requested=series.asked),),
        times=series.equal,
        notes=tuple(notes),
    )


def _context(match: re.Match[str], lines: Lines, name: str) -> MemoryReport:
    total = figure(match["total"], None)
    return MemoryReport(
        kind="runtime-alloc",
        severity="error",
        source=source(lines, name, "gpu-context", *match.span()),
        message=sentence(lines.text, *match.span()),
        backend="gpu",
        fits=False,
        spaces=(Space(name="hbm", capacity=total if total is not None and total < _ABSURD else None),),
        notes=("The device could not even be opened: something else holds nearly all of its memory.",),
    )
