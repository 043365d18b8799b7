"""A progress bar on a terminal for inputs that take a while to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from xlamem.readers.input import Progress

#: Files up to this size are read before anybody looks up.
_LARGE = 64 << 20


@contextmanager
def progress_of(source: str) -> Iterator[Progress | None]:
    """What to call while ``source`` is read; None where nobody waits or nobody sees it."""
    large = os.path.isfile(source) and os.path.getsize(source) > _LARGE
    if not large or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=os.path.getsize(source))
        yield lambda read, size: bar.update(task, completed=read, total=size or None)
