"""``xlamem diff``: what grew, what is new and what is gone between two reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from xlamem.commands.exits import DOES_NOT_FIT, OK
from xlamem.commands.options import Output, output_options
from xlamem.commands.parameters import size
from xlamem.commands.parameters import target as to_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlamem.show.layout import Line

_EPILOG = """\b
Examples:
  xlamem diff before.log after.log
  xlamem diff dump_main/ dump_branch/ --budget 14G      exit code 3 if the second needs more
  xlamem diff old.hlo.pb new.hlo.pb -f json | jq '.changes[0]'
"""


@click.command("diff", epilog=_EPILOG)
@click.argument("before", type=click.Path(allow_dash=True))
@click.argument("after", type=click.Path(allow_dash=True))
@click.option("--target", callback=to_target, metavar="CHIP", help="The chip, if the inputs do not tell.")
@click.option("--hbm", callback=size, metavar="SIZE", help="The device's memory, if not the reports': 16G.")
@click.option("--module", metavar="NAME", help="Of dump folders, the program with this in its name.")
@click.option("--budget", callback=size, metavar="SIZE", help="What AFTER may use.")
@output_options
def command(
    before: str,
    after: str,
    target: str | None,
    hbm: int | None,
    module: str | None,
    budget: int | None,
    output: Output,
) -> None:
    """Compare two reports: logs, dump folders, modules, in any form and not necessarily the same.

    Of an input with several reports the most important one counts. The exit code is 3 if AFTER does not fit
    or is over the budget.
    """
    from xlamem.analysis.diff import diff
    from xlamem.readers import read
    from xlamem.show import diff as shown

    if before == after == "-":
        raise click.UsageError("only one of BEFORE and AFTER can be standard input")
    first = read(before, target=target, hbm=hbm, module=module)
    found = diff(first, read(after, target=target, hbm=hbm, module=module), budget)

    def text(width: int) -> Iterator[Line]:
        return shown.lines(found, width, output.top)

    output.emit(
        text,
        json=lambda: shown.to_json(found),
        csv=lambda: shown.to_csv(found),
        markdown=lambda: shown.to_markdown(found, output.top),
    )
    failed = bool(found.over_budget) or found.after.fits is False
    click.get_current_context().exit(DOES_NOT_FIT if failed else OK)
