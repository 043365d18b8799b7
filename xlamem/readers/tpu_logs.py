"""What libtpu wrote to its own log folder while the program failed.

The exception is one line today, without any list of allocations. On a TPU host the same failure's memory usage
report is in ``tpu_driver.ERROR`` (``.WARNING``, ``.INFO``) under ``TPU_LOG_DIR``, by default ``tpu_logs`` in the
folder for temporary files.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import fields, replace

from xlamem.errors import InputError, NotAReportError
from xlamem.report import MemoryReport, Space
from xlamem.units import slack_of

#: How far apart in time a log and libtpu's may have been written last, in seconds, to be of the same run.
_SAME_RUN = 15 * 60


def folder() -> str:
    """Where libtpu writes its logs in this environment."""
    return os.environ.get("TPU_LOG_DIR") or os.path.join(tempfile.gettempdir(), "tpu_logs")


def last_logs() -> list[str]:
    """libtpu's logs, the newest run's first, of one run the most talkative first."""
    place = folder()
    try:
        names = [name for name in os.listdir(place) if name.startswith("tpu_driver.")]
    except OSError:
        return []
    found: dict[str, tuple[float, int, str]] = {}
    for name in names:
        path = os.path.join(place, name)
        try:
            # tpu_driver.INFO is a link to the newest of many.
            real, modified = os.path.realpath(path), os.path.getmtime(path)
        except OSError:
            continue
        talkative = next((at for at, level in enumerate(("INFO", "WARNING", "ERROR")) if level in name), 3)
        found.setdefault(real, (-modified // _SAME_RUN, talkative, path))
    return [path for _, _, path in sorted(found.values())]


def read_last() -> list[MemoryReport]:
    """The reports of the newest run that libtpu logged a failure of.

    Raises:
        NotAReportError: there are no logs, or no report is in them.
    """
    from xlamem.readers import read_all

    logs = last_logs()
    for path in logs:
        try:
            return read_all(path)
        except InputError:
            continue
    if logs:
        raise NotAReportError(f"{folder()}: no memory report in libtpu's {len(logs)} logs")
    raise NotAReportError(
        f"{folder()}: no logs of libtpu (tpu_driver.INFO ...); set TPU_LOG_DIR if they are elsewhere"
    )


def complete(report: MemoryReport, written: float) -> MemoryReport:
    """``report`` with the allocations that libtpu logged for it, if it has none of its own and they are found.

    They are of the same failure if the figures are the same, the program is not another one, and both logs
    were written last within a quarter of an hour; ``written`` is when ``report``'s was, in seconds.
    """
    from xlamem.readers import read_all

    main = report.space
    if report.kind != "hbm" or report.backend != "tpu" or report.allocations or main is None:
        return report
    for path in last_logs():
        if abs(os.path.getmtime(path) - written) > _SAME_RUN:
            continue
        try:
            logged = read_all(path)
        except InputError:
            continue
        for other in logged:
            if other.allocations and _same_failure(report, main, other):
                note = (
                    f"The allocations come from {path}, which libtpu wrote within 15 minutes of this and which has "
                    "the same figures."
                )
                return replace(
                    report,
                    allocations=other.allocations,
                    partial=other.partial,
                    spaces=(_filled(main, other.space), *other.spaces[1:]),
                    notes=(*report.notes, note, *other.notes),
                )
    return report


def _same_failure(report: MemoryReport, main: Space, other: MemoryReport) -> bool:
    if report.program and other.program and report.program != other.program:
        return False
    theirs = other.space
    if theirs is None or theirs.name != main.name or theirs.used is None or main.used is None:
        return False
    if abs(int(theirs.used) - int(main.used)) > 2 * (slack_of(theirs.used) + slack_of(main.used)):
        return False
    return theirs.capacity is None or main.capacity is None or theirs.capacity == main.capacity


def _filled(mine: Space, other: Space | None) -> Space:
    """``mine`` with what only ``other`` knows."""
    if other is None:
        return mine
    missing = {f.name: getattr(other, f.name) for f in fields(mine) if getattr(mine, f.name) is None}
    return replace(mine, **missing)
