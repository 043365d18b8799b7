"""Logs that were compressed: gzip, xz, bzip2 and Zstandard, told by their first bytes, not by their name."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Protocol

_GZIP, _XZ, _BZIP2, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd"

#: How much is decompressed at once. What a library makes of a piece is lost if the piece is damaged; and a few bytes
#: can stand for a hundred thousand.
_PIECE = 512


class _Stream(Protocol):
    """What every library has for one stream of compressed data, of which a file can hold several."""

    def decompress(self, data: bytes, /) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


class Damage:
    """What went wrong while decompressing; empty if nothing did. What came before it was read."""

    def __init__(self) -> None:
        self.text = ""


def decompress(stream: io.BufferedReader, damage: Damage) -> io.BufferedReader:
    """``stream`` itself, or what it is the compressed form of. A file that breaks off ends there."""
    begin = _begin(stream.peek(6)[:6])
    if begin is None:
        return stream
    return io.BufferedReader(_Tolerant(stream, begin, damage), 1 << 16)


def _begin(magic: bytes) -> Callable[[], _Stream] | None:
    """What decompresses a file that begins with ``magic``. The modules load only when one is met."""
    if magic.startswith(_GZIP):
        import zlib

        return lambda: zlib.decompressobj(16 + zlib.MAX_WBITS)
    if magic.startswith(_XZ):
        import lzma

        return lzma.LZMADecompressor
    if magic.startswith(_BZIP2):
        import bz2

        return bz2.BZ2Decompressor
    if magic.startswith(_ZSTD):
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj
    return None


class _Tolerant(io.RawIOBase):
    """Reads ``source`` as far as it can be decompressed, over all its streams."""

    def __init__(self, source: io.BufferedReader, begin: Callable[[], _Stream], damage: Damage) -> None:
        self._source = source
        self._begin = begin
        self._damage = damage
        self._stream: _Stream | None = None
        self._ahead = b""  # read, but not yet decompressed
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            while not self._ready and not self._damage.text and self._advance():
                pass
        except Exception as error:
            # Each library has exceptions of its own for data that are cut or wrong.
            self._damage.text = f"its compressed data break off ({error})"
        taken = self._ready[: len(buffer)]
        self._ready = self._ready[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def _advance(self) -> bool:
        """Decompress one more piece; False at the end."""
        piece = self._ahead or self._source.read(_PIECE)
        self._ahead = b""
        if self._stream is None:
            piece = piece.lstrip(b"\0")  # what tapes and block devices fill up with
            if not piece:
                return bool(self._source.peek(1))
            self._stream = self._begin()
        if not piece:
            raise EOFError("they end before their end mark")
        self._ready = memoryview(self._stream.decompress(piece))
        if self._stream.eof:
            self._ahead = self._stream.unused_data
            self._stream = None
        return True
