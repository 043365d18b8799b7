"""Values that people type: a size of memory, the name of a chip. A wrong one is wrong usage."""

from __future__ import annotations

import click

from xlamem.errors import ParseError, UnknownTargetError
from xlamem.units import parse_size


def size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of bytes, typed as 16G, 640M or 14 GiB."""
    if value is None:
        return None
    try:
        n = int(parse_size(value))
    except ParseError as error:
        raise click.BadParameter(f"{value!r} is {error.what}") from None
    if n == 0:
        raise click.BadParameter("must be more than nothing")
    return n


def target(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A chip that :mod:`xlamem.targets` knows, under any of its names; the result is the listed one."""
    if value is None:
        return None
    from xlamem import targets

    try:
        return targets.get(value).name
    except UnknownTargetError as error:
        raise click.BadParameter(str(error)) from None
