"""On which chips it would fit: TPUs with the bytes that the report has, GPUs with those that are not padding."""

from __future__ import annotations

from xlamem.analysis.padding import needed_without_padding
from xlamem.finding import Fit
from xlamem.report import MemoryReport, Space
from xlamem.targets import Device, all_devices
from xlamem.units import slack_of

#: Where the arguments are not known, less than this share of a chip must be needed to call it enough.
_ROOM = 0.9


def fits(report: MemoryReport) -> tuple[Fit, ...]:
    """One row a chip, for reports about device memory; empty for others.

    Another TPU is taken to need the same bytes: tiles differ little, but the compiler rematerializes and
    schedules otherwise, so only a compile tells. A GPU pads nothing; of its memory JAX takes three quarters
    unless told otherwise.
    """
    space = report.space
    if space is None or space.name != "hbm" or space.used is None or report.kind not in ("hbm", "success"):
        return ()
    least = arguments_missing(report, space)
    bare = needed_without_padding(report)
    rows: list[Fit] = []
    for device in all_devices():
        room = device.megacore or device.allowed
        if device.kind == "tpu":
            used = int(space.used)
            if _is_own(report, space, device) and report.fits is not None:
                answer: bool | None = report.fits
            else:
                answer = _fits(used, room, slack_of(space.used) + slack_of(room), least)
            rows.append(Fit(device.name, answer, used, room, report.provenance, least))
        elif bare is not None:
            answer = _fits(bare.bytes, room, slack_of(space.used), least)
            rows.append(Fit(device.name, answer, bare.bytes, room, "estimated", least))
    return tuple(rows)


def arguments_missing(report: MemoryReport, space: Space) -> bool:
    """Whether what is used leaves the arguments out, because the input does not say or they were not placed."""
    if report.kind == "success" or space.program is None:
        return False
    if space.arguments is None:
        return space.total is not None
    unplaced = space.capacity is not None and int(space.program) > int(space.capacity)
    return space.arguments == 0 and unplaced


def _is_own(report: MemoryReport, space: Space, device: Device) -> bool:
    """Whether the report itself answers for ``device``: it is of this chip with all its memory."""
    if report.target is None or report.target.name != device.name or space.capacity is None:
        return False
    return abs(int(space.capacity) - int(device.allowed)) <= 2 * (
        slack_of(space.capacity) + slack_of(device.allowed)
    )


def _fits(needed: int, room: int, slack: int, least: bool) -> bool | None:
    if abs(needed - int(room)) <= 2 * slack:
        return None
    if least and _ROOM * int(room) < needed < int(room):
        return None
    return needed <= int(room)
