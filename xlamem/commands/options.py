"""The output options that every command has, and what carries them out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EBADF
from typing import TYPE_CHECKING, Any, TypeVar

import click

from xlamem.commands.streams import is_terminal, silence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlamem.show.layout import Line

FORMATS = ("text", "json", "csv", "markdown")

_BY_SUFFIX = {".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}

#: Wider text than this serves nobody.
_WIDEST = 10_000

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Output:
    """Where the answer goes and in which form."""

    format: str
    file: str | None
    top: int
    color: bool
    width: int | None

    @property
    def text_width(self) -> int:
        """How wide plain text may be."""
        if self.width is not None:
            return min(self.width, _WIDEST)
        columns = os.environ.get("COLUMNS", "")
        if columns.isascii() and columns.isdigit():
            return min(max(int(columns[:9]), 40), _WIDEST)
        if self.file is None and is_terminal(sys.stdout):
            return min(max(os.get_terminal_size().columns, 40), _WIDEST)
        return 100

    @property
    def in_color(self) -> bool:
        """Whether to write colours: on a terminal that wants them."""
        return (
            self.color
            and self.file is None
            and is_terminal(sys.stdout)
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    def emit(self, lines: Callable[[int], Iterable[Line]], **others: Callable[[], str]) -> None:
        """Write the answer: ``lines`` lays it out as text of a width, ``others`` make each other format.

        A reader that leaves early, ``| head``, changes nothing, the exit code included.

        Raises:
            OSError: it cannot be written there.
        """
        try:
            self._emit(lines, others)
        except BrokenPipeError:
            silence()

    def _emit(self, lines: Callable[[int], Iterable[Line]], others: Mapping[str, Callable[[], str]]) -> None:
        if self.format != "text":
            self._write(others[self.format]())
        elif self.in_color:
            # Not at the top: plain text needs no rich, and comes sooner without.
            from xlamem.show import color

            console = color.terminal_console(self.text_width)
            color.put(lines(console.width), console)
        else:
            from xlamem.show.layout import text_of

            self._write(text_of(lines(self.text_width)))

    def _write(self, text: str) -> None:
        if self.file is not None:
            with open(self.file, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            return
        if sys.stdout is None:
            raise OSError(EBADF, "standard output is closed")
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:  # somebody caught the output as text
            sys.stdout.write(text)
            return
        # As bytes: the line ends of CSV must not be translated, and what the encoding lacks is spelled out.
        binary.write(text.encode(sys.stdout.encoding, "backslashreplace"))
        binary.flush()


def output_options(function: _F) -> _F:
    """Add the options that say where the answer goes and how; ``function`` gets them as ``output``."""
    from functools import update_wrapper

    def wrapper(
        *args: Any,
        format: str | None,
        output: str | None,
        top: int,
        width: int | None,
        no_color: bool,
        **kwargs: Any,
    ) -> Any:
        to_file = None if output == "-" else output
        chosen = Output(format or _from_suffix(to_file), to_file, top, not no_color, width)
        return function(*args, output=chosen, **kwargs)

    update_wrapper(wrapper, function)
    for option in reversed(_OPTIONS):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]


_OPTIONS = (
    click.option(
        "-f",
        "--format",
        type=click.Choice(FORMATS),
        help="text unless FILE says otherwise. JSON and CSV always hold everything.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Write there; .json, .csv and .md say the format.",
    ),
    click.option(
        "--top",
        type=click.IntRange(min=1),
        default=20,
        show_default=True,
        metavar="N",
        help="List the N largest.",
    ),
    click.option("--width", type=click.IntRange(min=40), metavar="N", help="Columns of text."),
    click.option("--no-color", is_flag=True, help="Plain text; so do NO_COLOR and a pipe."),
)


def _from_suffix(file: str | None) -> str:
    if file is None:
        return "text"
    dot = file.rfind(".")
    return _BY_SUFFIX.get(file[dot:].lower(), "text") if dot >= 0 else "text"
