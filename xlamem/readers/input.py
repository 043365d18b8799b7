"""Opening what the user pointed at: a path, standard input, an open file or the text itself."""

from __future__ import annotations

import codecs
import os
import sys
from dataclasses import dataclass
from typing import IO

from xlamem.errors import NotReadableError
from xlamem.units import format_size

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # PowerShell's ">" writes UTF-16.
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Input:
    """An input that was read: its name for messages ("-" is standard input) and its text."""

    name: str
    text: str

    @property
    def size_text(self) -> str:
        """How much was read, for messages."""
        count = self.text.count("\n") + 1 if self.text else 0
        return "an empty input" if not self.text.strip() else f"{count} lines ({format_size(len(self.text))})"


def open_input(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> Input:
    """Read ``source``.

    Raises:
        NotReadableError: no such file, a directory, no permission, or not text.
    """
    if not isinstance(source, str | os.PathLike):
        content = source.read()
        name = getattr(source, "name", None)
        return _decode(name if isinstance(name, str) else "<file>", content)
    if source == "-":
        return _decode("-", sys.stdin.buffer.read())
    if isinstance(source, str) and "\n" in source:
        return Input("<text>", source)
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        raise NotReadableError(f"{path}: no such file{_similar(path)}") from None
    except IsADirectoryError:
        raise NotReadableError(f"{path}: a directory; name the log file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotReadableError(f"{path}: cannot be read: {reason}") from None
    return _decode(path, content)


def _similar(path: str) -> str:
    """A hint at the name that was perhaps meant."""
    import difflib

    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return f", nor the folder {folder}"
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {os.path.join(folder, close[0])}?" if close else ""


def _decode(name: str, content: str | bytes) -> Input:
    if isinstance(content, str):
        return Input(name, content)
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            return Input(name, content.decode(encoding, errors="replace"))
    if b"\0" in content[:8192]:
        raise NotReadableError(f"{name}: binary, not a text log")
    # A log can hold any bytes; what is not UTF-8 is shown as a replacement character, and kept.
    return Input(name, content.decode("utf-8", errors="replace"))
