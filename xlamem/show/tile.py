"""What shapes take in memory, as data; :mod:`xlamem.show.tile_terminal` is for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlamem.show import escape, words
from xlamem.show.rows import axis_rows, axis_texts

if TYPE_CHECKING:
    from xlamem.finding import Advice
    from xlamem.shape import Shape


@dataclass(frozen=True, slots=True)
class Tile:
    """A shape on a chip, with what can be said about its memory.

    ``given`` is what was asked about; ``shape`` is the same with a layout, the one that the compiler is known
    to choose where ``given`` had none. ``orders`` are other orders of the axes, the smallest first.
    """

    given: Shape
    shape: Shape
    target: str
    orders: tuple[Shape, ...] = ()
    advice: tuple[Advice, ...] = ()

    @property
    def assumed(self) -> bool:
        """Whether the layout was chosen here."""
        return self.given != self.shape

    @property
    def bytes(self) -> int:
        """What it takes in memory; of a tuple, all its arrays without the tuple's own table."""
        shape = self.shape
        return shape.padded_bytes if shape.is_tuple or shape.elements else shape.padded_bytes_on(self.target)

    @property
    def unpadded_bytes(self) -> int:
        """What its elements alone take."""
        return self.shape.unpadded_bytes

    @property
    def padding_bytes(self) -> int:
        """The difference: ``bytes - unpadded_bytes``."""
        return self.bytes - self.unpadded_bytes

    @property
    def expansion(self) -> float | None:
        """Padded / unpadded; None for a shape without elements."""
        return self.bytes / self.unpadded_bytes if self.unpadded_bytes else None


COLUMNS = (
    "given",
    "shape",
    "target",
    "layout_assumed",
    "bytes",
    "unpadded_bytes",
    "padding_bytes",
    "expansion",
    "axis_padding",
    "best_order",
    "best_order_bytes",
)


def answer(tile: Tile) -> str:
    """The answer in one line: "9216 bytes (9.0KiB) for 18 bytes of data: 512x, 9198 bytes of padding"."""
    whole = words.size(tile.bytes)
    rounded = f" ({whole})" if tile.bytes >= 1024 else ""
    text = f"{tile.bytes} bytes{rounded} for {tile.unpadded_bytes} bytes of data"
    if not tile.padding_bytes:
        return f"{text}: no padding"
    if tile.padding_bytes < 0:
        return f"{text}: packed, {-tile.padding_bytes} bytes less"
    ratio = f"{words.times(tile.expansion)}, " if tile.expansion else ""
    return f"{text}: {ratio}{tile.padding_bytes} bytes of padding"


def to_json(tiles: Sequence[Tile]) -> str:
    """All about ``tiles``; sizes are bytes."""
    from xlamem.show.json import document

    return document("tile", {"shapes": [_object(tile) for tile in tiles]})


def to_csv(tiles: Sequence[Tile]) -> str:
    """One row a shape."""
    from xlamem.show.csv import table

    return table(COLUMNS, map(_row, tiles))


def to_markdown(tiles: Sequence[Tile]) -> str:
    """The answers as a table, then what to change."""
    from xlamem.show.markdown import suggestion, table

    columns = ("shape", "target", "bytes", "unpadded", "padding", "expansion", "padded axes")
    lines = list(table(columns, map(_cells, tiles), frozenset(columns[2:6])))
    for tile in tiles:
        if tile.advice:
            lines += ["", f"What to change in {escape.markdown_code(str(tile.shape))}:", ""]
            for advice in tile.advice:
                lines += suggestion(advice)
    return "\n".join(lines) + "\n"


def leaf_rows(tile: Tile) -> Iterator[tuple[Shape, int]]:
    """The arrays of a tuple, each with its bytes."""
    for leaf in tile.shape.leaves():
        yield leaf, leaf.padded_bytes


def _object(tile: Tile) -> dict[str, object]:
    from xlamem.show.json import advice_object

    return {
        "given": str(tile.given),
        "shape": str(tile.shape),
        "layout_assumed": tile.assumed,
        "target": tile.target,
        "bytes": tile.bytes,
        "unpadded_bytes": tile.unpadded_bytes,
        "padding_bytes": tile.padding_bytes,
        "expansion": tile.expansion,
        "table_bytes": tile.shape.padded_bytes_on(tile.target) if tile.shape.is_tuple else None,
        "axis_padding": axis_rows(tile.shape),
        "elements": [
            {"shape": str(leaf), "bytes": size, "axis_padding": axis_rows(leaf)}
            for leaf, size in (leaf_rows(tile) if tile.shape.is_tuple else ())
        ],
        "orders": [{"shape": str(order), "bytes": order.padded_bytes} for order in tile.orders],
        "advice": [advice_object(advice) for advice in tile.advice],
        "provenance": "computed",
    }


def _row(tile: Tile) -> dict[str, object]:
    return {
        "given": str(tile.given),
        "shape": str(tile.shape),
        "target": tile.target,
        "layout_assumed": tile.assumed,
        "bytes": tile.bytes,
        "unpadded_bytes": tile.unpadded_bytes,
        "padding_bytes": tile.padding_bytes,
        "expansion": tile.expansion,
        "axis_padding": "; ".join(axis_texts(tile.shape)),
        "best_order": str(tile.orders[0]) if tile.orders else None,
        "best_order_bytes": tile.orders[0].padded_bytes if tile.orders else None,
    }


def _cells(tile: Tile) -> dict[str, str]:
    return {
        "shape": escape.markdown_code(str(tile.shape), in_table=True),
        "target": escape.markdown(tile.target),
        "bytes": str(tile.bytes),
        "unpadded": str(tile.unpadded_bytes),
        "padding": str(tile.padding_bytes),
        "expansion": words.times(tile.expansion),
        "padded axes": escape.markdown("; ".join(axis_texts(tile.shape))),
    }
