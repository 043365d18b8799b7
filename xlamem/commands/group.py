"""The group of commands: loads each only when it is called, and turns failures into exit codes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from xlamem import __version__
from xlamem.commands.exits import ERROR, INTERRUPTED, NO_REPORT, OK
from xlamem.commands.streams import silence
from xlamem.errors import NotAReportError, XlamemError

_HELP = """Read what XLA says about memory: who holds the bytes, how many are padding, what to change.

\b
  xlamem explain oom.log             a saved log, as it came
  python train.py 2>&1 | xlamem explain
  xlamem tile 'f32[1048576,3]'       what one shape takes on a TPU
  xlamem targets                     the chips and their memory
"""

_EPILOG = """\b
Exit codes: 0 it fits or done, 1 an error, 2 wrong usage, 3 it does not fit
or is over budget, 4 nothing in the input is a memory report.
"""


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own under :mod:`xlamem.commands`.

    ``summaries`` gives each command's name and its line in ``--help``.
    """

    def __init__(self, summaries: Mapping[str, str]) -> None:
        super().__init__(
            name="xlamem",
            help=_HELP,
            epilog=_EPILOG,
            params=[_version_option()],
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        self._summaries = dict(summaries)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """As in click; ``--help`` and ``--version``, which are written here, may find no room or no reader."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            silence()
            raise click.exceptions.Exit(OK) from None
        except OSError as error:
            fail(error)
            silence()
            raise click.exceptions.Exit(ERROR) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which people need them."""
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of ``cmd_name`` and return its ``command``."""
        if cmd_name not in self._summaries:
            return None
        from importlib import import_module

        command = import_module(f"xlamem.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with a hint at the command that was perhaps meant."""
        name = args[0]
        if name not in self._summaries and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, self._summaries, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            if "." in name or os.sep in name or name == "-":
                hint = f" Did you mean 'xlamem explain {name}'?"
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever goes wrong on purpose is one message and an exit code, no traceback."""
        try:
            super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            silence()
        except NotAReportError as error:
            fail(error)
            ctx.exit(NO_REPORT)
        except XlamemError as error:
            fail(error)
            ctx.exit(ERROR)
        except OSError as error:
            fail(error)
            silence()
            ctx.exit(ERROR)


def fail(error: Exception) -> None:
    """Print ``error`` on standard error, with what it quotes from the input made harmless."""
    from xlamem.show import escape

    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        message = str(error)
    click.echo("error: " + "\n".join(escape.visible_lines(message)), err=True)


def _version_option() -> click.Option:
    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(f"xlamem {__version__}")
            ctx.exit()

    # click.version_option would ask importlib.metadata, which takes longer than everything else here.
    return click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Print the version.",
    )
