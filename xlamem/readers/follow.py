"""A log that is still growing: each report once the log has been quiet for a moment after it, or soon anyway."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import monotonic, sleep
from typing import BinaryIO

from xlamem.errors import NotAReportError
from xlamem.readers import read_all
from xlamem.readers.input import Input
from xlamem.report import MemoryReport

#: Seconds between looks at the file, of quiet after which what was written is taken for whole, and after which it
#: is told although more keeps coming.
_EVERY = 0.3
_QUIET = 1.5
_LATEST = 5.0
#: What is kept of the text so far, in bytes: a report may have begun in it. No more is read at once.
_KEPT = 8 << 20


def follow(
    path: str, *, target: str | None = None, hbm: int | str | None = None, seconds: float | None = None
) -> Iterator[MemoryReport]:
    """The reports of ``path`` as they come, those that are there already first; each once.

    A file that is not there yet is waited for. One that became shorter, or whose name another file has now, was
    rotated: the new one is read from its start, after the rest of the old one. This never ends by itself, unless
    ``seconds`` have passed.
    """
    ends = None if seconds is None else monotonic() + seconds
    told: set[object] = set()
    tail = _Tail(path)
    try:
        while ends is None or monotonic() < ends:
            while tail.read():
                for report in _reports(tail, target, hbm):
                    # A report that has grown since is told again.
                    key = (report.message, report.spaces, len(report.allocations))
                    if key not in told:
                        told.add(key)
                        yield report
            sleep(_EVERY)
    finally:
        tail.close()


class _Tail:
    """The end of a file that grows: ``text``, before which there are ``lines_before`` lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self.text = b""
        self.lines_before = 0
        self._untold = 0  # bytes
        self._since: float | None = None  # when the first of them came
        self._changed = 0.0

    def read(self) -> bool:
        """Take up what was written since; whether it is time to tell what is in ``text``."""
        if self._file is None:
            if not os.path.exists(self.path):
                return False
            self._file = open(self.path, "rb")  # noqa: SIM115 - stays open while it is followed
        data = self._file.read(_KEPT)
        now = monotonic()
        if data:
            self._trim()
            self.text += data
            self._untold += len(data)
            self._changed = now
            self._since = now if self._since is None else self._since
        gone = not data and self._was_replaced()
        due = self._since is not None and (
            gone or self._untold >= _KEPT or now - self._changed >= _QUIET or now - self._since >= _LATEST
        )
        if due:
            self._untold, self._since = 0, None
        elif gone:
            self.close()
            self.text, self.lines_before = b"", 0
            return self.read()
        return due

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _trim(self) -> None:
        """Drop what was told long ago, up to a line's end if there is one."""
        spare = len(self.text) - _KEPT
        if spare > 0:
            cut = self.text.rfind(b"\n", 0, spare) + 1 or spare
            self.lines_before += self.text.count(b"\n", 0, cut)
            self.text = self.text[cut:]

    def _was_replaced(self) -> bool:
        """Whether the file was cut, or has lost its name to another; one that is only away is waited for."""
        assert self._file is not None
        ours = os.fstat(self._file.fileno())
        if ours.st_size < self._file.tell():
            return True
        try:
            return not os.path.samestat(ours, os.stat(self.path))
        except FileNotFoundError:
            return False


def _reports(tail: _Tail, target: str | None, hbm: int | str | None) -> list[MemoryReport]:
    try:
        return read_all(Input.of_bytes(tail.path, tail.text, tail.lines_before), target=target, hbm=hbm)
    except NotAReportError:
        return []
