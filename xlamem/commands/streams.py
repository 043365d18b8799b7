"""The standard streams, any of which may be closed: Python has None in its place then."""

from __future__ import annotations

import os
import sys
from typing import IO


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether somebody sits at the other end of ``stream``."""
    return stream is not None and stream.isatty()


def silence() -> None:
    """Send what is still to be written on standard output nowhere: its reader has left, or it has no room.

    Python flushes once more when it ends, which must not fail again.
    """
    if sys.stdout is None:
        return
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
