"""What a shape takes in memory, on a terminal: the answer, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from xlamem.show import suggestions, tile, words
from xlamem.show.pieces import bullet, grid, put, title
from xlamem.show.rows import axis_texts

if TYPE_CHECKING:
    from rich.console import Console

    from xlamem.show.tile import Tile


#: How many of the orders that take less are shown; JSON has all.
_BEST = 5


def render(tiles: Sequence[Tile], console: Console) -> None:
    """Print ``tiles``, one after the other."""
    for number, one in enumerate(tiles):
        if number:
            console.print()
        _one(one, console)


def _one(one: Tile, console: Console) -> None:
    style = "bold yellow" if one.padding_bytes > 0 else "bold green"
    console.print(Text(tile.answer(one), style=style), soft_wrap=True)
    console.print(Text(_about(one)))
    if one.shape.is_tuple:
        _elements(one, console)
    elif reasons := axis_texts(one.shape):
        put(console, Text(""), title("Why"), *(bullet(Text(reason), console.width) for reason in reasons))
    if one.orders:
        _orders(one, console)
    if one.advice:
        put(console, Text(""), title("What to change"))
        for advice in one.advice:
            put(console, *suggestions.block(advice, indent=2))


def _about(one: Tile) -> str:
    if not one.assumed:
        return f"{one.shape} on {one.target}"
    return f"{one.shape}: the layout that XLA picks on {one.target} for {one.given}, which has none"


def _elements(one: Tile, console: Console) -> None:
    table_size = words.size(one.shape.padded_bytes_on(one.target))
    put(console, Text(""), title("Its arrays", f"the tuple's own table of pointers takes {table_size} more"))
    rows = grid(2)
    rows.columns[0].justify = "right"
    for leaf, size in tile.leaf_rows(one):
        text = Text(str(leaf), style="cyan")
        for reason in axis_texts(leaf):
            text.append(f"\n{reason}", style="yellow")
        rows.add_row(Text(words.size(size), style="bold"), text)
    put(console, Padding(rows, (0, 0, 0, 2)))


def _orders(one: Tile, console: Console) -> None:
    better = [order for order in one.orders if order.padded_bytes < one.bytes]
    if not better and one.shape.rank < 2:
        return
    if not better:
        put(console, Text(""), Text("No other order of the axes takes less."))
        return
    put(console, Text(""), title("Orders of the axes in memory", "each with the tile that XLA chooses for it"))
    rows = grid(3)
    rows.columns[0].justify = rows.columns[1].justify = "right"
    for order in [*better[:_BEST], one.shape]:
        text = Text(str(order), style="cyan")
        if order is one.shape:
            text.append("  as it is", style="bold")
        size = Text(words.size(order.padded_bytes), style="bold")
        rows.add_row(size, Text(words.times(order.expansion)), text)
    put(console, Padding(rows, (0, 0, 0, 2)))
