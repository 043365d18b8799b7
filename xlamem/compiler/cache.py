"""Answers kept on disk, so that the same question again needs no compiler.

Entries are named by the hash of all that decides the answer. Each is one file, written aside and renamed, so that
several processes can share the folder; the ones not asked for longest go first when there are too many.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import shutil
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import xlamem
from xlamem.errors import InputError, ParseError
from xlamem.units import parse_size

__all__ = ["Cache", "Usage", "key_of"]

#: Bytes that the entries may take together, unless XLAMEM_CACHE_SIZE says otherwise.
DEFAULT_SIZE = 1 << 30

#: What the answer of a compile depends on and that is in nobody's arguments.
_ENVIRONMENT = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


def key_of(*parts: object) -> str:
    """A name for the answer to a question that ``parts`` make up; part of it is what xlamem itself is.

    Their ``repr`` counts: only plain data, with dicts in a fixed order.
    """
    environment = [os.environ.get(name) for name in _ENVIRONMENT]
    whole = repr((_own_state(), environment, parts))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=1)
def _own_state() -> str:
    """Changes with every change to xlamem: who works on it must not be shown old answers."""
    root = Path(__file__).parents[1]
    state = [xlamem.__version__]
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            if name.endswith((".py", ".toml")):
                found = os.stat(os.path.join(folder, name))
                state.append(f"{name} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(state).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """How much is kept: number of entries, and bytes."""

    folder: Path
    entries: int
    bytes: int
    limit: int


class Cache:
    """The folder of answers: ``folder``, or XLAMEM_CACHE_DIR, or where the system keeps such things.

    A disk that cannot be written makes it useless, and is no error: an answer is only slower then.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, size: int | None = None) -> None:
        self.folder = Path(folder or os.environ.get("XLAMEM_CACHE_DIR") or _default_folder())
        self.size = _default_size() if size is None else size

    def get(self, key: str) -> Any | None:
        """What was put there under ``key``; None if nothing was, or it is damaged."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                value = _Unpickler(io.BytesIO(zlib.decompress(file.read()))).load()
        except FileNotFoundError:
            return None
        except Exception:
            # Cut off, or from another Python: whatever it is, it can be made again.
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # asked for just now
        return value

    def put(self, key: str, value: Any) -> None:
        """Keep ``value`` under ``key``, and drop what is too much then."""
        path = self._path(key)
        data = zlib.compress(pickle.dumps(value, protocol=5), 1)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(aside, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(aside)
                raise
            self._trim(keep=path)

    def usage(self) -> Usage:
        """What is there now."""
        found = list(self._entries())
        return Usage(self.folder, len(found), sum(size for _, size, _ in found), self.size)

    def clear(self) -> Usage:
        """Remove everything, and say what it was."""
        usage = self.usage()
        shutil.rmtree(self.folder, ignore_errors=True)
        return usage

    def _trim(self, keep: Path) -> None:
        found = sorted(self._entries())
        total = sum(size for _, size, _ in found)
        for _, size, path in found:
            if total <= self.size:
                return
            if path != keep:
                with contextlib.suppress(OSError):
                    path.unlink()
                total -= size

    def _entries(self) -> Iterable[tuple[int, int, Path]]:
        """(last use, bytes, path) of each."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            for part in os.scandir(self.folder):
                if part.is_dir():
                    for entry in os.scandir(part.path):
                        with contextlib.suppress(FileNotFoundError):
                            found = entry.stat()
                            yield found.st_mtime_ns, found.st_size, Path(entry.path)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


class _Unpickler(pickle.Unpickler):
    """Loads plain data and xlamem's own classes, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        # Light records of the readers name tuple as what makes them: it only holds what it is given.
        if module.split(".")[0] == "xlamem" or (module, name) == ("builtins", "tuple"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} has no place in the cache")


def _default_folder() -> str:
    import platformdirs

    return platformdirs.user_cache_dir("xlamem")


def _default_size() -> int:
    text = os.environ.get("XLAMEM_CACHE_SIZE")
    try:
        return int(parse_size(text)) if text else DEFAULT_SIZE
    except ParseError as error:
        raise InputError(f"XLAMEM_CACHE_SIZE: {text!r} is {error.what}") from None
