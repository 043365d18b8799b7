"""The pieces that what is shown on a terminal is made of."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from xlamem.show import escape


def title(text: str, remark: str = "") -> Text:
    """The head of a section, with a remark in a quieter style."""
    head = Text(escape.visible(text), style="bold")
    if remark:
        head.append(f"  {escape.visible(remark)}", style="not bold dim")
    return head


def bullet(text: Text, width: int) -> RenderableType:
    """A list item whose second line stands under the first."""
    item = Table.grid(padding=0)
    item.add_column(width=4)
    item.add_column(overflow="fold", width=max(width - 4, 10))
    item.add_row(Text("  - "), text)
    return item


def grid(columns: int) -> Table:
    """A table without lines or heads."""
    made = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(columns):
        made.add_column(overflow="fold")
    return made


def code(line: str) -> Text:
    """A line to be copied: :func:`put` never wraps it."""
    return Text(line, style="cyan", no_wrap=True, overflow="ignore")


def put(console: Console, *parts: RenderableType) -> None:
    """Print ``parts``, each on lines of its own."""
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap is True)
