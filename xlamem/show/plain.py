"""Consoles: one that only writes characters, one for a terminal. Neither takes text for markup."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console


def text_of(draw: Callable[[Console], None], width: int) -> str:
    """What ``draw`` prints, as plain text: no colour, no control characters but newlines."""
    out = io.StringIO()
    draw(
        Console(
            file=out,
            width=width,
            color_system=None,
            force_terminal=False,
            force_jupyter=False,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
            _environ={},
        )
    )
    # A table fills its lines up with spaces, which nobody wants in a file.
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().split("\n")[:-1])


def terminal(width: int | None = None) -> Console:
    """A console on standard output, in colour if that is a terminal."""
    return Console(width=width, markup=False, emoji=False, highlight=False)
