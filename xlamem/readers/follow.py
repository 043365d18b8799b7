"""A log that is still growing: each report as soon as the log has been quiet for a moment after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import monotonic, sleep

from xlamem.errors import NotAReportError
from xlamem.readers import read_all
from xlamem.readers.input import Input
from xlamem.report import MemoryReport

#: Seconds between looks at the file, and of quiet after which what was written is taken for whole.
_EVERY = 0.3
_QUIET = 1.5
#: What is kept of the text so far, in bytes: a report may have begun in it.
_KEPT = 8 << 20


def follow(
    path: str, *, target: str | None = None, hbm: int | None = None, seconds: float | None = None
) -> Iterator[MemoryReport]:
    """The reports of ``path`` as they come, those that are there already first; each once.

    A file that is not there yet is waited for; one that became shorter was rotated and is read from its start.
    This never ends by itself, unless ``seconds`` have passed.
    """
    ends = None if seconds is None else monotonic() + seconds
    told: set[object] = set()
    text = b""
    lines_before = at = 0
    changed: float | None = None
    while ends is None or monotonic() < ends:
        size = os.path.getsize(path) if os.path.exists(path) else 0
        if size < at:
            text, at, lines_before = b"", 0, 0
        if size > at:
            with open(path, "rb") as file:
                file.seek(at)
                text += file.read(size - at)
            at = size
            changed = monotonic()
        elif changed is not None and monotonic() - changed >= _QUIET:
            changed = None
            for report in _reports(text, path, lines_before, target, hbm):
                # A report that has grown since is told again.
                key = (report.message, report.spaces, len(report.allocations))
                if key not in told:
                    told.add(key)
                    yield report
            cut = text.rfind(b"\n", 0, max(0, len(text) - _KEPT)) + 1
            lines_before += text.count(b"\n", 0, cut)
            text = text[cut:]
        sleep(_EVERY)


def _reports(
    text: bytes, path: str, lines_before: int, target: str | None, hbm: int | None
) -> list[MemoryReport]:
    try:
        return read_all(Input.of_bytes(path, text, lines_before), target=target, hbm=hbm)
    except NotAReportError:
        return []
