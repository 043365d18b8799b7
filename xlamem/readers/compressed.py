"""Logs that were compressed: gzip, xz, bzip2 and Zstandard, told by their first bytes, not by their name."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Protocol

_GZIP, _XZ, _BZIP2, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd"


class _Reader(Protocol):
    """What every decompressor offers. ``read1`` gives what is there; ``read`` would lose it at a broken end."""

    def read1(self, size: int = -1, /) -> bytes: ...


class Damage:
    """What went wrong while decompressing; empty if nothing did. What came before it was read."""

    def __init__(self) -> None:
        self.text = ""


def decompress(stream: io.BufferedReader, damage: Damage) -> io.BufferedReader:
    """``stream`` itself, or what it is the compressed form of. A file that breaks off ends there."""
    opener = _opener(stream.peek(6)[:6])
    if opener is None:
        return stream
    return io.BufferedReader(_Tolerant(opener(stream), damage))


def _opener(magic: bytes) -> Callable[[io.BufferedReader], _Reader] | None:
    """What opens a file that begins with ``magic``. The modules load only when one is met."""
    if magic.startswith(_GZIP):
        import gzip

        return lambda stream: gzip.GzipFile(fileobj=stream)
    if magic.startswith(_XZ):
        import lzma

        return lambda stream: lzma.LZMAFile(stream)
    if magic.startswith(_BZIP2):
        import bz2

        return lambda stream: bz2.BZ2File(stream)
    if magic.startswith(_ZSTD):
        import zstandard

        return lambda stream: zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    return None


class _Tolerant(io.RawIOBase):
    """Reads ``inner`` as far as it can be decompressed."""

    def __init__(self, inner: _Reader, damage: Damage) -> None:
        self._inner = inner
        self._damage = damage

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._damage.text:
            return 0
        try:
            data = self._inner.read1(len(buffer))
        except Exception as error:
            # Each library has exceptions of its own for data that are cut or wrong.
            self._damage.text = f"its compressed data break off ({error})"
            return 0
        buffer[: len(data)] = data
        return len(data)
