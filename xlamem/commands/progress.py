"""A progress bar on a terminal for inputs that take a while to read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from xlamem.commands.streams import is_terminal
from xlamem.readers.input import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

#: Seconds before anybody looks up.
_PATIENCE = 0.7


@contextmanager
def progress_bar(*, files: bool) -> Iterator[Progress | None]:
    """What to call with how much is read and how much there is, files or bytes; None where nobody sees it."""
    if not is_terminal(sys.stderr):
        yield None
        return
    bar = _Bar(files)
    try:
        yield bar.update
    finally:
        bar.stop()


class _Bar:
    """A bar that comes up only when reading takes longer than a moment."""

    def __init__(self, files: bool) -> None:
        self._files = files
        self._begins = monotonic() + _PATIENCE
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def update(self, done: int, total: int) -> None:
        """Show it, once it is time to; a ``total`` of 0 is not known."""
        if self._bar is None:
            if monotonic() < self._begins:
                return
            self._bar = self._start()
            self._task = self._bar.add_task("reading")
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=total or None)

    def stop(self) -> None:
        """Take it away."""
        if self._bar is not None:
            self._bar.stop()

    def _start(self) -> Bar:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        count = MofNCompleteColumn() if self._files else DownloadColumn(binary_units=True)
        text = TextColumn("reading files" if self._files else "reading")
        bar = Bar(
            text, BarColumn(), count, TimeRemainingColumn(), console=Console(stderr=True), transient=True
        )
        bar.start()
        return bar
