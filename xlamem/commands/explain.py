"""``xlamem explain``: what ran out, who holds it, and what to change."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from xlamem.commands.exits import DOES_NOT_FIT, ERROR, NO_REPORT, OK
from xlamem.commands.group import fail
from xlamem.commands.options import Output, output_options
from xlamem.commands.parameters import size
from xlamem.commands.parameters import target as to_target
from xlamem.commands.progress import progress_bar
from xlamem.commands.reports import show
from xlamem.commands.streams import is_terminal
from xlamem.errors import InputError, NotAReportError

if TYPE_CHECKING:
    from xlamem.report import MemoryReport

_EPILOG = """\b
Examples:
  xlamem explain oom.log
  python train.py 2>&1 | xlamem explain
  kubectl logs train-0 | xlamem explain - --top 5
  xlamem explain worker-*.log --all
  xlamem explain oom.log --hbm 16G             another capacity than the report's
  xlamem explain oom.log -f json | jq '.reports[0].spaces.hbm.over'
  xlamem explain oom.log -o oom.md             to paste into an issue
  xlamem explain logs/ -f csv --per failure    a row for each failure of many runs
  xlamem explain --last                        what libtpu logged last on this host
  xlamem explain train.log --follow            a log that is still growing
  xlamem explain DUMP_DIR --module jit_step    one program of an XLA dump
  xlamem explain DUMP_DIR -f csv --per value   every value, alive at the peak or not
"""

_SEVERITIES = ("error", "warning", "info")


@click.command("explain", epilog=_EPILOG)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", type=click.Path(allow_dash=True))
@click.option("--target", callback=to_target, metavar="CHIP", help="The chip, if the log does not tell.")
@click.option("--hbm", callback=size, metavar="SIZE", help="The device's memory, if not the report's: 16G.")
@click.option("--module", metavar="NAME", help="Of a dump folder, the programs with this in their name.")
@click.option("--all", "everything", is_flag=True, help="Every report, suggestion and check.")
@click.option("--last", is_flag=True, help="Start from libtpu's own logs (TPU_LOG_DIR, or tpu_logs).")
@click.option("--follow", is_flag=True, help="Wait for more of a log that grows, until Ctrl-C.")
@click.option(
    "--per",
    type=click.Choice(("allocation", "failure", "value")),
    help="What a row of CSV is: a failure if there are several logs, otherwise an allocation; or a value of a dump.",
)
@output_options
def command(
    sources: tuple[str, ...],
    target: str | None,
    hbm: int | None,
    module: str | None,
    everything: bool,
    last: bool,
    follow: bool,
    per: str | None,
    output: Output,
) -> None:
    """Say what ran out of memory, who holds it, how much is padding, and what to change.

    SOURCE is a log with whatever else is in it, compressed or not, a folder of logs, an XLA dump folder or a
    file of one; - is standard input, which is also read if no SOURCE is given and something is piped in. The
    first line of the answer is the answer.
    """
    options = _Reading(target, hbm, module)
    if last and (sources or follow):
        raise click.UsageError("--last reads libtpu's own logs; name no SOURCE with it")
    if follow:
        _follow(sources, options, output, everything)
        return
    if last:
        from xlamem.readers.tpu_logs import read_last

        reports, status = read_last(), OK
    else:
        reports, status = _read(sources or _piped(), options)
    if reports:
        show(reports, output, command="explain", everything=everything, per=per)
        # An input that could not be read counts more than what the others say.
        status = status or _verdict(reports)
    click.get_current_context().exit(status)


def _piped() -> tuple[str, ...]:
    if sys.stdin is None or is_terminal(sys.stdin):
        raise click.UsageError("name a log, or pipe one in: python train.py 2>&1 | xlamem explain")
    return ("-",)


class _Reading(NamedTuple):
    """What the user knows better than the input."""

    target: str | None
    hbm: int | None
    module: str | None


def _read(sources: tuple[str, ...], options: _Reading) -> tuple[list[MemoryReport], int]:
    """The reports of all ``sources``, the most serious first, and the exit code so far."""
    from xlamem.readers import read_all

    reports: list[MemoryReport] = []
    status = OK
    without = 0
    each = list(dict.fromkeys(sources))
    several = len(each) > 1
    with progress_bar(files=several or os.path.isdir(each[0])) as progress:
        for count, source in enumerate(each):
            if several and progress is not None:
                progress(count, len(each))
            try:
                inner = None if several else progress
                found = read_all(_named(source), **options._asdict(), progress=inner)
                reports += _completed(found, source)
            except NotAReportError as error:
                fail(error)
                without += 1
            except (InputError, OSError) as error:
                # The other inputs may still have the answer.
                fail(error)
                status = ERROR
    if not reports and without and status == OK:
        status = NO_REPORT
    # Stable: within an input the reader knows best.
    reports.sort(key=lambda report: _SEVERITIES.index(report.severity))
    return reports, status


def _completed(reports: list[MemoryReport], source: str) -> list[MemoryReport]:
    """``reports``, the first with what libtpu's own logs know of it, where those are on this machine."""
    first, *others = reports
    if first.allocations or first.backend != "tpu":
        return reports
    from time import time

    from xlamem.readers.tpu_logs import complete

    written = os.path.getmtime(source) if os.path.exists(source) else time()
    return [complete(first, written), *others]


def _follow(sources: tuple[str, ...], options: _Reading, output: Output, everything: bool) -> None:
    if len(sources) != 1 or sources[0] == "-" or os.path.isdir(sources[0]):
        raise click.UsageError("--follow needs one file; a pipe is read to its end anyway")
    from xlamem.readers.follow import follow

    status = OK
    try:
        for report in follow(sources[0], target=options.target, hbm=options.hbm):
            show([report], output, command="explain", everything=everything, per="failure")
            status = max(status, _verdict([report]))
    except KeyboardInterrupt:
        click.get_current_context().exit(status)


def _named(source: str) -> str | os.PathLike[str]:
    """``source`` as what can only be a name: a string of several lines would be read as the log itself."""
    if "\n" not in source:
        return source
    from pathlib import Path

    return Path(source)


def _verdict(reports: list[MemoryReport]) -> int:
    failed = any(report.severity == "error" and report.fits is not True for report in reports)
    return DOES_NOT_FIT if failed else OK
