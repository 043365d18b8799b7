"""Answering a command again without importing jax: what was asked, and what the answer depends on.

The cache proper is keyed by the program, which only tracing gives. So beside each answer to a command lies a list
of the files and environment variables that were read while tracing. While they are the same, so is the program.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from xlamem.compiler.cache import Cache
from xlamem.compiler.recorder import signature

__all__ = ["Manifest", "find", "keep"]

#: Set by this program itself, or different in every shell and of no effect.
_OF_NO_EFFECT = frozenset(
    {"XLA_FLAGS", "PYTHONPATH", "COLUMNS", "LINES", "TERM", "PWD", "OLDPWD", "SHLVL", "_"}
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The ``key`` of an answer, and the state of everything that led to it."""

    key: str
    files: Mapping[str, tuple[int, int]]
    environment: Mapping[str, str | None]

    def holds(self) -> bool:
        """Whether everything is as it was."""
        return all(os.environ.get(n) == value for n, value in self.environment.items()) and all(
            signature(path) == was for path, was in self.files.items()
        )


def find(cache: Cache, question: str) -> str | None:
    """The key of the answer to ``question``, if nothing has changed since."""
    manifest = cache.get(question)
    return manifest.key if isinstance(manifest, Manifest) and manifest.holds() else None


def keep(
    cache: Cache,
    question: str,
    key: str,
    files: Mapping[str, tuple[int, int]],
    environment: Mapping[str, str | None],
    given: Mapping[str, str],
) -> None:
    """Remember that ``question`` leads to ``key``. ``given`` are variables that only the child had."""
    theirs = {n: v for n, v in environment.items() if n not in _OF_NO_EFFECT and n not in given}
    cache.put(question, Manifest(key, dict(files), theirs))
