"""What a child read while it traced a function: files and environment variables.

The same function gives the same program as long as none of them changes; :mod:`xlamem.compiler.manifest` relies
on that to answer again without importing jax.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["Recorder", "signature", "start"]

_NOT_FILES = ("/proc/", "/sys/", "/dev/")


def signature(path: str) -> tuple[int, int] | None:
    """Size and time of the last change (ns) of a file; None if it is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


class Recorder:
    """Collects names while it is on; ``so_far`` looks them up."""

    def __init__(self) -> None:
        self._opened: set[str] = set()
        self._asked: dict[str, str | None] = {}

    def watch(self) -> None:
        """Begin. Python has no way to take an audit hook away again; this one is cheap."""
        opened = self._opened

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event == "open" and isinstance(args[0], str):
                flags = args[2] if isinstance(args[2], int) else 0
                if not flags & (os.O_WRONLY | os.O_RDWR):
                    opened.add(args[0])

        sys.addaudithook(hook)
        asked = self._asked
        environment = type(os.environ)
        real = environment.__getitem__

        def getitem(self: Any, key: str) -> str:
            try:
                value = real(self, key)
            except KeyError:
                asked.setdefault(key, None)
                raise
            asked.setdefault(key, value)
            return value

        environment.__getitem__ = getitem  # type: ignore[method-assign]

    def so_far(self, without: Path) -> tuple[dict[str, tuple[int, int]], dict[str, str | None]]:
        """Files and variables up to now; nothing under the folder ``without``."""
        names = set(self._opened)
        names |= {
            file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))
        }
        files = {}
        for name in names:
            path = os.path.abspath(name)
            if path.startswith((*_NOT_FILES, str(without))) or "__pycache__" in path:
                continue
            found = signature(path)
            if found is not None and os.path.isfile(path):
                files[path] = found
        return files, dict(self._asked)


def start() -> Recorder:
    """A recorder that is on."""
    recorder = Recorder()
    recorder.watch()
    return recorder
