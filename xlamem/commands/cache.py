"""``xlamem cache``: where answers of compiles are kept, how much that is, and getting rid of it."""

from __future__ import annotations

import click

from xlamem.commands.options import Output, output_options

_EPILOG = """\b
Examples:
  xlamem cache
  xlamem cache --clear
Set XLAMEM_CACHE_DIR to keep answers elsewhere, XLAMEM_CACHE_SIZE (4G) to keep more.
"""


@click.command("cache", epilog=_EPILOG)
@click.option("--clear", is_flag=True, help="Remove everything.")
@output_options
def command(clear: bool, output: Output) -> None:
    """Say where the answers of compiles are kept, and how much they take."""
    from xlamem.compiler.cache import Cache
    from xlamem.show import cache as show

    cache = Cache()
    usage = cache.clear() if clear else cache.usage()
    output.emit(
        lambda width: show.lines(usage, width, cleared=clear),
        json=lambda: show.to_json(usage, cleared=clear),
        csv=lambda: show.to_csv(usage),
        markdown=lambda: show.to_markdown(usage),
    )
