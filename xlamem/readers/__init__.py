"""Reading: whatever XLA said about memory becomes :class:`~xlamem.report.MemoryReport`.

:func:`read_all` opens the input, finds out what it is and hands it to the module of that form. A new form
is a new module here and one line in this one.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import IO

from xlamem.errors import NotAReportError
from xlamem.readers.input import Input, open_input
from xlamem.readers.lines import normalise, wrap_width
from xlamem.readers.merge import merge
from xlamem.readers.tpu_oom import read_tpu_oom
from xlamem.report import MemoryReport, Space, Target

__all__ = ["read", "read_all"]

_LOOKED_FOR = (
    "looked for a TPU out-of-memory report ('Ran out of memory in memory space', 'Total hbm usage', "
    "'Program hbm requirement', 'Largest program allocations')"
)


def read(
    source: str | os.PathLike[str] | IO[str] | IO[bytes],
    *,
    target: str | None = None,
    hbm: int | None = None,
) -> MemoryReport:
    """The most important memory report of ``source``: what stopped the run. See :func:`read_all`."""
    return read_all(source, target=target, hbm=hbm)[0]


def read_all(
    source: str | os.PathLike[str] | IO[str] | IO[bytes],
    *,
    target: str | None = None,
    hbm: int | None = None,
) -> list[MemoryReport]:
    """Every memory report of ``source``, each once, the one that stopped the run first.

    Args:
        source: a path, ``"-"`` for standard input, an open file, or text (a string with a line end in it).
        target: the chip, where the reader knows better than what the report's capacity suggests.
        hbm: the capacity of the device memory in bytes, likewise.

    Raises:
        NotReadableError: there is no such file, or it cannot be read as text.
        NotAReportError: nothing in it is a memory report.
        UnknownTargetError: ``target`` is no chip.
    """
    opened = open_input(source)
    reports = _read_text(opened)
    if not reports:
        raise NotAReportError(f"{opened.name}: no memory report in {opened.size_text}; {_LOOKED_FOR}")
    return [_override(report, target, hbm) for report in merge(reports)]


def _read_text(opened: Input) -> list[MemoryReport]:
    reports = list(read_tpu_oom(normalise(opened.text), opened.name))
    width = wrap_width(opened.text)
    if width is not None:
        # Perhaps the text was broken at a fixed width; believe that only if more is understood then.
        again = list(read_tpu_oom(normalise(opened.text, width=width), opened.name))
        if _understood(again) > _understood(reports):
            return again
    return reports


def _understood(reports: list[MemoryReport]) -> int:
    """How much of the text made sense: facts found less lines not understood.

    A report that was told in one piece is better than the same in two.
    """
    facts = 0
    for report in reports:
        facts -= 12
        for a in report.allocations:
            facts += 2 + (a.shape is not None) + (a.kind != "other") + len(a.label or "") // 40
        for space in report.spaces:
            facts += sum(value is not None for value in space.figures().values())
        facts -= 3 * len(report.unparsed)
    return facts


def _override(report: MemoryReport, target: str | None, hbm: int | None) -> MemoryReport:
    """``report`` with the chip and the capacity that the user gave."""
    if target is not None:
        from xlamem.targets import get

        report = replace(report, target=Target(get(target).name, inferred=False))
    if hbm is not None:
        report = replace(report, spaces=tuple(_with_capacity(space, hbm) for space in report.spaces))
        main = report.space
        if main is not None and main.name == "hbm" and main.used is not None:
            report = replace(report, fits=int(main.used) <= hbm)
    return report


def _with_capacity(space: Space, capacity: int) -> Space:
    if space.name != "hbm":
        return space
    over = None if space.used is None else max(0, int(space.used) - capacity)
    return replace(space, capacity=capacity, over=over)
