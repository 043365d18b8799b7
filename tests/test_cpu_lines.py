"""The CPU backend's sentence, and what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage import DAMAGE

from xlamem.readers.cpu_lines import read_cpu_lines
from xlamem.readers.lines import normalise
from xlamem.report import MemoryReport

LOG = (Path(__file__).parent.parent / "fixtures" / "logs" / "cpu_oom.log").read_text()


def read(text: str) -> list[MemoryReport]:
    return list(read_cpu_lines(normalise(text), "x.log"))


def test_by_hand() -> None:
    new, old = read(LOG)
    assert (new.kind, new.severity, new.backend, new.fits) == ("host", "error", "cpu", False)
    assert new.message == "Out of memory allocating 17592186044416 bytes."
    assert new.source.line == 3
    assert [r.space and (r.space.name, r.space.requested) for r in (new, old)] == [
        ("host", 1 << 44),
        ("host", 805_306_368),
    ]


@pytest.mark.parametrize("name", [n for n in DAMAGE if n not in ("wrapped at 80", "wrapped at 117")])
def test_what_users_tools_do_to_it(name: str) -> None:
    assert [r.spaces for r in read(DAMAGE[name](LOG))] == [r.spaces for r in read(LOG)]


@pytest.mark.parametrize(
    "text",
    [
        "cc1plus: out of memory allocating 1052671 bytes after a total of 283914240 bytes\n",
        "Ran out of memory allocating 1485644460 (1416.8 MiB) bytes with alignment 4.\n",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 512 bytes (allocated so far: 0 bytes).\n",
        "Out of memory allocating 1,073,741,824 bytes\n",
        "RESOURCE_EXHAUSTED: Out of memory allocating 175921860",
        "RESOURCE_EXHAUSTED: Out of memory allocating 175921860 byt",
    ],
)
def test_what_is_none(text: str) -> None:
    assert read(text) == []
