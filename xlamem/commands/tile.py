"""``xlamem tile``: what a shape takes in TPU memory, and how to make it take less."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from xlamem.commands.exits import ERROR, OK
from xlamem.commands.group import fail
from xlamem.commands.options import Output, output_options
from xlamem.commands.parameters import target as to_target
from xlamem.errors import InputError, NotReadableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlamem.shape import Shape
    from xlamem.show.tile import Tile

_EPILOG = """\b
Examples:
  xlamem tile 'bf16[3,3,1,1]{3,2,1,0:T(4,128)(2,1)}'
  xlamem tile 'f32[1048576,3]' --target v5e        the layout that XLA picks
  xlamem tile 'f32[8,3]' 'f32[8,128]' -f csv
  grep -o 'f32[^ ]*' module.txt | xlamem tile - -f json
"""


@click.command("tile", epilog=_EPILOG)
@click.argument("shapes", nargs=-1, required=True, metavar="SHAPE...")
@click.option(
    "--target", callback=to_target, default="v5e", show_default=True, metavar="CHIP", help="The chip."
)
@output_options
def command(shapes: tuple[str, ...], target: str, output: Output) -> None:
    """Say what SHAPE takes in memory, which axes are padded, and what to change.

    A shape is written as in HLO, with or without a layout; - reads shapes from standard input, one a line.
    """
    tiles: list[Tile] = []
    status = OK
    for text in _texts(shapes):
        try:
            tiles.append(_tile(text, target))
        except InputError as error:
            fail(error)
            status = ERROR
    if tiles:
        _show(tiles, output)
    click.get_current_context().exit(status)


def _texts(shapes: tuple[str, ...]) -> Iterable[str]:
    for text in shapes:
        if text == "-":
            if sys.stdin is None:
                raise NotReadableError("-: standard input is closed")
            lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
            yield from (line.strip() for line in lines if line.strip())
        else:
            yield text


def _tile(text: str, target: str) -> Tile:
    from xlamem.advice import advise_shape
    from xlamem.layouts import orders
    from xlamem.shape import Shape
    from xlamem.show.tile import Tile

    given = Shape.parse(text)
    shape = _laid_out(given, target)
    is_padded = not shape.elements and shape.padding > 0
    return Tile(
        given=given,
        shape=shape,
        target=target,
        orders=tuple(orders(shape, target)) if is_padded else (),
        advice=advise_shape(shape, target) if is_padded else (),
    )


def _laid_out(shape: Shape, target: str) -> Shape:
    """``shape`` with a layout wherever it has none; in a tuple each array keeps or gets its own."""
    from xlamem.layouts import default_layout

    if shape.elements:
        return replace(shape, elements=tuple(_laid_out(element, target) for element in shape.elements))
    return shape if shape.layout is not None else default_layout(shape, target)


def _show(tiles: list[Tile], output: Output) -> None:
    from xlamem.show import tile, tile_terminal

    output.emit(
        lambda width: tile_terminal.lines(tiles, width=width),
        json=lambda: tile.to_json(tiles),
        csv=lambda: tile.to_csv(tiles),
        markdown=lambda: tile.to_markdown(tiles),
    )
