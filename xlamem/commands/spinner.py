"""What a compile is at and for how long, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xlamem.commands.streams import is_terminal


@contextmanager
def spinner(what: str, color: bool = True) -> Iterator[Callable[[str, float], None] | None]:
    """What to call with a stage and the seconds so far; None where standard error is no terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True, no_color=True if not color else None).status(
        f"{escape(what)}: starting"
    ) as status:
        yield lambda stage, seconds: status.update(f"{escape(what)}: {stage}, {seconds:.0f} s")
