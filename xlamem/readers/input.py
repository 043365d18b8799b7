"""Opening what the user pointed at: a path, standard input, an open file or the text itself."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import IO, cast

from xlamem.errors import NotReadableError
from xlamem.readers.compressed import Damage, decompress
from xlamem.readers.scan import windows

#: Called while reading with the bytes of the file read so far and its size, 0 where that is not known.
Progress = Callable[[int, int], None]

# PowerShell's ">" writes UTF-16.
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD = 8192
#: A file of a dump is read whole; what is larger than this is none that a machine could hold.
_MAX_DUMP = 512 << 20
_PIECE = 1 << 20
# What the one line of a failure holds, and hardly the name of a file.
_FAILURE = re.compile(
    r"out[ _]of[ _]memory|resource.?exhausted|memory (?:space|usage report|use below|size)|exceed|allocat"
    r"|not possible|device memory|XLA::TPU|OOM|vmem|incompatible size|size_in_bytes",
    re.IGNORECASE,
)
_CONTROL = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b"))


class Input:
    """An opened input: its ``name`` for messages ("-" is standard input), its first bytes, ``head``, and what went
    wrong while it was decompressed, ``damage``."""

    def __init__(
        self, name: str, raw: IO[bytes], progress: Progress | None = None, lines_before: int = 0
    ) -> None:
        self.name = name
        self._lines_before = lines_before
        self.damage = Damage()
        self._raw = raw
        self._progress = progress
        self._size = os.fstat(raw.fileno()).st_size if progress and raw.seekable() else 0
        self._stream = decompress(_buffered(raw), self.damage)
        self.head = self._stream.peek(_HEAD)[:_HEAD]
        self.bytes_read = 0

    @classmethod
    def of_bytes(cls, name: str, data: bytes, lines_before: int = 0) -> Input:
        """An input that is in memory already; so many lines of it came before ``data``."""
        return cls(name, io.BytesIO(data), lines_before=lines_before)

    def read(self) -> bytes:
        """All of it, for formats that are no log.

        Raises:
            NotReadableError: it is larger than a dump that can be worked on.
        """
        pieces: list[bytes] = []
        size = 0
        while piece := self._stream.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > _MAX_DUMP:
                raise NotReadableError(
                    f"{self.name}: looks like a file of an XLA dump, which is read whole, and is larger than "
                    f"{_MAX_DUMP >> 20}MiB"
                )
        return b"".join(pieces)

    def windows(self) -> Iterator[tuple[int, str]]:
        """The stretches that may hold a report: the 1-based number of the first line, and the text.

        Raises:
            NotReadableError: it is binary.
        """
        stream: IO[bytes] = self._stream
        if self.head.startswith(_UTF16):
            stream = io.BufferedReader(_Utf8(stream), _PIECE)
        elif _is_binary(self.head):
            raise NotReadableError(f"{self.name}: binary, not a text log")
        for window in windows(stream, self._count):
            # A log can hold any bytes; what is not UTF-8 is shown as a replacement character.
            # Rotation leaves runs of NUL behind.
            yield (
                window.first_line + self._lines_before,
                window.data.decode("utf-8", errors="replace").replace("\0", ""),
            )

    def close(self) -> None:
        """Close what was opened here."""
        if self._raw is not getattr(sys.stdin, "buffer", None):
            self._raw.close()

    def _count(self, read: int) -> None:
        self.bytes_read = read
        if self._progress is not None:
            self._progress(self._raw.tell() if self._size else read, self._size)


Source = str | bytes | bytearray | memoryview | os.PathLike[str] | IO[str] | IO[bytes] | Input


def _buffered(raw: IO[bytes]) -> io.BufferedReader:
    return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))


class _Utf8(io.RawIOBase):
    """The UTF-16 of ``inner`` as UTF-8."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = b" "
        while data and not self._left:
            data = self._inner.read(_PIECE)
            self._left = self._decoder.decode(data, not data).encode(errors="replace")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def _is_binary(head: bytes) -> bool:
    """Whether control characters that no log holds are more than a few."""
    text = head.replace(b"\0", b"")
    return 20 * (len(text) - len(text.translate(None, _CONTROL))) > len(text)


def open_input(source: Source, progress: Progress | None = None) -> Input:
    """Open ``source``, unless it is an :class:`Input` already.

    Raises:
        NotReadableError: no such file, a directory, no permission, a closed file.
    """
    if isinstance(source, Input):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return Input.of_bytes("<text>", bytes(source))
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "read"):
            raise NotReadableError(f"neither a path, an open file nor text: {type(source).__name__}")
        return _of_file(source)
    if source == "-":
        if sys.stdin is None:
            raise NotReadableError("-: standard input is closed")
        binary = getattr(sys.stdin, "buffer", None)
        # Notebooks and tests put something in its place that has text only.
        return Input("-", binary) if binary is not None else _of_file(sys.stdin, "-")
    if isinstance(source, str) and is_text(source):
        return Input.of_bytes("<text>", source.encode(errors="replace"))
    path = os.fspath(source)
    try:
        raw = open(path, "rb")  # noqa: SIM115 - closed by Input.close
    except FileNotFoundError:
        raise NotReadableError(f"{path}: no such file{_similar(path)}") from None
    except IsADirectoryError:
        raise NotReadableError(f"{path}: a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotReadableError(f"{path}: cannot be read: {reason}") from None
    return Input(path, raw, progress)


def _of_file(file: IO[str] | IO[bytes], name: str | None = None) -> Input:
    """All that is in an open file, which stays open."""
    if name is None:
        name = getattr(file, "name", None)
        name = name if isinstance(name, str) else "<file>"
    try:
        content = file.read()
    except (OSError, ValueError) as error:  # closed, for writing only, not in its encoding
        raise NotReadableError(f"{name}: cannot be read: {error}") from None
    if isinstance(content, str):
        content = content.encode(errors="replace")
    if not isinstance(content, bytes | bytearray | memoryview):
        raise NotReadableError(
            f"{name}: cannot be read: it gives {type(content).__name__}, not text or bytes"
        )
    return Input.of_bytes(name, bytes(content))


def is_text(source: str) -> bool:
    """Whether ``source`` is text rather than a path: it has a line end, or it is the one line of a failure."""
    if "\n" in source:
        return True
    return _FAILURE.search(source) is not None and not os.path.exists(source)


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
