"""On which chips it would fit: TPUs with the bytes that the report has, GPUs with those that are not padding."""

from __future__ import annotations

from xlamem.analysis.padding import needed_without_padding
from xlamem.finding import Fit
from xlamem.report import MemoryReport, Provenance, Space
from xlamem.targets import Device, all_devices
from xlamem.units import slack_of

#: Where the arguments are not known, less than this share of a chip must be needed to call it enough.
_ROOM = 0.9


def fits(report: MemoryReport) -> tuple[Fit, ...]:
    """One row a chip, for reports about device memory; empty for others.

    What was compiled for one TPU is taken to need about the same on another: tiles differ little, but the compiler
    rematerializes and schedules otherwise, so that is an estimate, and only a compile tells. A GPU pads nothing;
    of its memory JAX takes three quarters unless told otherwise. What was compiled for a GPU or CPU says nothing
    about TPUs. v4's two cores run as one device for users; a report or compile of one core answers for one.
    """
    space = report.space
    if space is None or space.name != "hbm" or space.used is None or report.kind not in ("hbm", "success"):
        return ()
    if report.backend not in ("tpu", "gpu"):
        return ()
    least = arguments_missing(report, space)
    bare = needed_without_padding(report)
    rows: list[Fit] = []
    for device in all_devices():
        own = _is_own(report, space, device) and report.fits is not None
        room = device.allowed if own else device.megacore or device.allowed
        if device.kind == "tpu" and report.backend == "tpu":
            used = int(space.used)
            answer = report.fits if own else _fits(used, room, slack_of(space.used) + slack_of(room), least)
            known: Provenance = report.provenance if own or report.provenance == "reported" else "estimated"
            rows.append(Fit(device.name, answer, used, room, known, least))
        elif device.kind == "gpu" and bare is not None:
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
