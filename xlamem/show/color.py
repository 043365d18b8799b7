"""Lines on a terminal, in colour: the only module that imports rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from xlamem.show.layout import Line


def terminal_console(width: int | None = None) -> Console:
    """A console on standard output that takes nothing in a text for markup."""
    return Console(width=width, markup=False, emoji=False, highlight=False)


def put(lines: Iterable[Line], console: Console) -> None:
    """Print ``lines`` as they are laid out: nothing is wrapped again, so that code survives being copied."""
    for line in lines:
        text = Text(no_wrap=True, overflow="ignore", end="")
        for part, style in line:
            text.append(part, style)
        text.rstrip()
        console.print(text, soft_wrap=True)
