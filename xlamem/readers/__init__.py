"""Reading: whatever XLA said about memory becomes :class:`~xlamem.report.MemoryReport`.

:func:`read_all` finds out what the input is: a folder of a dump or of logs, one file of a dump, or a log, and
hands it to the module for that.
"""

from __future__ import annotations

import os
import re
from contextlib import closing
from dataclasses import replace

from xlamem.errors import NotAReportError
from xlamem.readers.input import Input, Progress, Source, open_input
from xlamem.report import MemoryReport, Space, Target

__all__ = ["read", "read_all"]

# How the text files of a dump begin. Its binary ones hold a NUL, which no log does.
_DUMPED = re.compile(
    rb"\s*(?:HloModule |BufferAssignment:|HloLiveRange|InstructionSequence|Memory Space:|Total bytes used:)"
)


def read(
    source: Source, *, target: str | None = None, hbm: int | None = None, module: str | None = None
) -> MemoryReport:
    """The most important memory report of ``source``: what stopped the run. See :func:`read_all`."""
    return read_all(source, target=target, hbm=hbm, module=module)[0]


def read_all(
    source: Source,
    *,
    target: str | None = None,
    hbm: int | None = None,
    module: str | None = None,
    progress: Progress | None = None,
) -> list[MemoryReport]:
    """Every memory report of ``source``, each once, the one that stopped the run first.

    Args:
        source: a log, compressed or not, a dump folder, a file of one, or a folder of logs: a path, ``"-"`` for
            standard input, an open file, or text (a string with a line end in it).
        target: the chip, where the reader knows better than what the report's capacity suggests.
        hbm: the capacity of the device memory in bytes, likewise.
        module: in a dump folder, which programs: a name or a part of one.
        progress: called while a large file is read, with the bytes so far and in all (0: not known).

    Raises:
        NotReadableError: there is no such file, or it can be neither read nor decoded.
        NotAReportError: nothing in it is a memory report.
        UnknownTargetError: ``target`` is no chip.
    """
    if isinstance(source, str | os.PathLike) and "\n" not in str(source) and os.path.isdir(source):
        from xlamem.readers.folder import read_folder

        reports = read_folder(os.fspath(source), module)
    else:
        reports = _read_file(open_input(source, progress))
    return [_override(report, target, hbm) for report in reports]


def _read_file(opened: Input) -> list[MemoryReport]:
    with closing(opened):
        if b"\0" in opened.head or opened.name.endswith(".pb") or _DUMPED.match(opened.head):
            from xlamem.readers.dump import read_bytes

            data = opened.read()
            report = read_bytes(opened.name, data)
            if report is not None:
                return [report]
            return _read_as_log(Input.of_bytes(opened.name, data))
        return _read_as_log(opened)


def _read_as_log(opened: Input) -> list[MemoryReport]:
    from xlamem.readers.log import read_log
    from xlamem.readers.merge import merge

    reports = merge(list(read_log(opened)))
    if not reports:
        raise NotAReportError(_nothing_in(opened))
    if opened.damage.text:
        note = f"{opened.name}: {opened.damage.text}; what follows was not read"
        reports = [replace(report, notes=(*report.notes, note)) for report in reports]
    return reports


def _nothing_in(opened: Input) -> str:
    from xlamem.units import format_size

    size = f"{format_size(opened.bytes_read)} of text" if opened.bytes_read else "an empty input"
    damage = f" ({opened.damage.text})" if opened.damage.text else ""
    return (
        f"{opened.name}: no memory report in {size}{damage}; looked for what XLA, its TPU and GPU runtimes, "
        "TensorFlow and PyTorch print when memory runs out ('RESOURCE_EXHAUSTED', 'Ran out of memory', 'Out of "
        "memory while trying to allocate', 'Attempting to allocate' ...), for memory usage reports, HLO and dumps"
    )


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
