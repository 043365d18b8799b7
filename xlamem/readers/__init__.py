"""Reading: whatever XLA said about memory becomes :class:`~xlamem.report.MemoryReport`.

:func:`read_all` finds out what the input is: a folder of a dump or of logs, one file of a dump, or a log, and
hands it to the module for that.
"""

from __future__ import annotations

import os
import re
from contextlib import closing
from dataclasses import replace

from xlamem.errors import InputError, NotAReportError
from xlamem.readers.input import Input, Progress, Source, open_input
from xlamem.report import MemoryReport, Target
from xlamem.units import parse_capacity

__all__ = ["read", "read_all"]

# How the text files of a dump begin. Its binary ones hold a NUL, and so do logs that were cut while open.
_DUMPED = re.compile(
    rb"\s*(?:HloModule |BufferAssignment:|HloLiveRange|InstructionSequence|Memory Space:|Total bytes used:)"
)


def read(
    source: Source, *, target: str | None = None, hbm: int | str | None = None, module: str | None = None
) -> MemoryReport:
    """The most important memory report of ``source``: what stopped the run. See :func:`read_all`."""
    return read_all(source, target=target, hbm=hbm, module=module)[0]


def read_all(
    source: Source,
    *,
    target: str | None = None,
    hbm: int | str | None = None,
    module: str | None = None,
    progress: Progress | None = None,
) -> list[MemoryReport]:
    """Every memory report of ``source``, each once, the one that stopped the run first.

    Args:
        source: a log, compressed or not, a dump folder, a file of one, or a folder of logs: a path, ``"-"`` for
            standard input, an open file, bytes, or text: a string with a line end in it, or the one line of a failure,
            such as ``str(exception)``.
        target: the chip, where the reader knows better than what the report's capacity suggests.
        hbm: the capacity of the device memory, likewise: bytes, or text such as "16G".
        module: in a dump folder, which programs: a name or a part of one.
        progress: called while a file is read, with the bytes so far and in all (0: not known), and while a folder
            of logs is, with the files.

    Raises:
        NotReadableError: there is no such file, or it can be neither read nor decoded.
        NotAReportError: nothing in it is a memory report.
        InputError: ``hbm`` is no size of a memory, or ``target`` is of another kind than the input.
        UnknownTargetError: ``target`` is no chip.
    """
    capacity = None if hbm is None else parse_capacity(hbm)
    if isinstance(source, os.PathLike | str) and "\n" not in str(source) and os.path.isdir(source):
        from xlamem.readers.folder import read_folder

        reports = read_folder(os.fspath(source), module, progress)
    else:
        reports = _read_file(open_input(source, progress))
    return [_override(report, target, capacity) for report in reports]


def _read_file(opened: Input) -> list[MemoryReport]:
    with closing(opened):
        if _is_dumped(opened):
            from xlamem.readers.dump import read_bytes

            data = opened.read()
            report = read_bytes(opened.name, data)
            if report is not None:
                return [report]
            return _read_as_log(Input.of_bytes(opened.name, data))
        return _read_as_log(opened)


def _is_dumped(opened: Input) -> bool:
    """Whether it begins as a file of a dump does."""
    if opened.name.endswith(".pb") or _DUMPED.match(opened.head):
        return True
    if b"\0" not in opened.head:
        return False
    from xlamem.readers.hlo_proto import sniff

    return sniff(opened.name, opened.head)


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
        report = _on(report, target)
    main = report.space
    if hbm is not None and main is not None and main.name == "hbm":
        from xlamem.units import format_size

        said = f"; the input says {format_size(main.capacity)}" if main.capacity is not None else ""
        note = f"The capacity of {format_size(hbm)} was given{said}."
        if report.provenance in ("compiled", "estimated"):
            from xlamem.readers.capacity import with_capacity

            return with_capacity(replace(report, notes=(*report.notes, note)), hbm)
        over = None if main.used is None or int(main.used) <= hbm else int(main.used) - hbm
        given = replace(main, capacity=hbm, over=over)
        report = replace(
            report,
            spaces=(given, *report.spaces[1:]),
            fits=report.fits if main.used is None else int(main.used) <= hbm,
            notes=(*report.notes, note),
        )
    return report


def _on(report: MemoryReport, target: str) -> MemoryReport:
    """``report`` as of the chip that the user names."""
    from xlamem.targets import get
    from xlamem.units import format_size, slack_of

    device = get(target)
    if report.backend in ("tpu", "gpu") and device.kind != report.backend:
        told, named = report.backend.upper(), device.kind.upper()
        raise InputError(
            f"{report.source.name}: what it tells is of a {told}, and {device.name} is a {named}"
        )
    notes = report.notes
    capacity = report.space.capacity if report.space is not None and report.space.name == "hbm" else None
    known = (device.allowed, *device.capacities)
    if capacity and not any(
        abs(int(capacity) - int(k)) <= 2 * (slack_of(capacity) + slack_of(k)) for k in known
    ):
        allowed = format_size(device.allowed)
        notes += (
            f"{device.name} was given, which allows {allowed}; the input says {format_size(capacity)}.",
        )
    report = replace(report, target=Target(device.name, inferred=False), notes=notes)
    if report.provenance in ("compiled", "estimated") and capacity is None and report.backend != "cpu":
        from xlamem.readers.capacity import with_capacity

        return with_capacity(report, device.allowed)
    return report
