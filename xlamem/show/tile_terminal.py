"""What a shape takes in memory, on a terminal: the answer, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xlamem.show import suggestions, tile, words
from xlamem.show.layout import Cell, Column, Line, table, widest, wrap
from xlamem.show.pieces import BLANK, bullet, paragraph, title
from xlamem.show.rows import axis_texts

if TYPE_CHECKING:
    from xlamem.show.tile import Tile

#: How many of the orders that take less are shown; JSON has all.
_BEST = 5


def lines(tiles: Sequence[Tile], *, width: int) -> Iterator[Line]:
    """``tiles``, one after the other."""
    for number, one in enumerate(tiles):
        if number:
            yield BLANK
        yield from _one(one, width)


def _one(one: Tile, width: int) -> Iterator[Line]:
    yield [(tile.answer(one), "bold yellow" if one.padding_bytes > 0 else "bold green")]
    yield from paragraph(_about(one), width)
    if one.shape.is_tuple:
        yield from _elements(one, width)
    elif reasons := axis_texts(one.shape):
        yield BLANK
        yield title("Why")
        for reason in reasons:
            yield from bullet(reason, width)
    if one.orders:
        yield from _orders(one, width)
    if one.advice:
        yield BLANK
        yield title("What to change")
        for advice in one.advice:
            yield from suggestions.block(advice, width=width, indent=2)


def _about(one: Tile) -> str:
    if not one.assumed:
        return f"{one.shape} on {one.target}"
    return f"{one.shape}: the layout that XLA picks on {one.target} for {one.given}, which has none"


def _elements(one: Tile, width: int) -> Iterator[Line]:
    table_size = words.size(one.shape.padded_bytes_on(one.target))
    yield BLANK
    yield from wrap(title("Its arrays", f"the tuple's own table of pointers takes {table_size} more"), width)
    rows: list[list[Cell]] = [
        [
            [[(words.size(size), "bold")]],
            [[(str(leaf), "cyan")], *([(reason, "yellow")] for reason in axis_texts(leaf))],
        ]
        for leaf, size in tile.leaf_rows(one)
    ]
    sizes = widest(words.size(size) for _, size in tile.leaf_rows(one))
    yield from table([Column("", sizes, right=True), Column("", width - sizes - 4)], rows, indent=2)


def _orders(one: Tile, width: int) -> Iterator[Line]:
    better = [order for order in one.orders if order.padded_bytes < one.bytes]
    if not better:
        if one.shape.rank > 1:
            yield BLANK
            yield [("No other order of the axes takes less.", "")]
        return
    yield BLANK
    yield from wrap(
        title("Orders of the axes in memory", "each with the tile that XLA chooses for it"), width
    )
    shown = [*better[:_BEST], one.shape]
    sizes = widest(words.size(order.padded_bytes) for order in shown)
    ratios = widest(words.times(order.expansion) for order in shown)
    columns = [
        Column("", sizes, right=True),
        Column("", ratios, right=True),
        Column("", width - sizes - ratios - 6),
    ]
    rows: list[list[Cell]] = [
        [
            [[(words.size(order.padded_bytes), "bold")]],
            [[(words.times(order.expansion), "")]],
            [[(str(order), "cyan"), ("  as it is" if order is one.shape else "", "bold")]],
        ]
        for order in shown
    ]
    yield from table(columns, rows, indent=2)
