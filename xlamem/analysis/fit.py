"""On which chips it would fit: TPUs with the bytes as reported, GPUs with those that are not padding."""

from __future__ import annotations

from xlamem.analysis.padding import needed_without_padding
from xlamem.finding import Fit
from xlamem.report import MemoryReport
from xlamem.targets import all_devices


def fits(report: MemoryReport) -> tuple[Fit, ...]:
    """One row a chip, for reports about device memory; empty for others.

    Another TPU is taken to need the same bytes: tiles differ little, but the compiler rematerializes and
    schedules otherwise, so only a compile tells. A GPU pads nothing; of its memory JAX takes three quarters
    unless told otherwise.
    """
    space = report.space
    if space is None or space.name != "hbm" or space.used is None or report.kind not in ("hbm", "success"):
        return ()
    used = int(space.used)
    bare = needed_without_padding(report)
    rows: list[Fit] = []
    for device in all_devices():
        if device.kind == "tpu":
            rows.append(Fit(device.name, used <= device.allowed, used, device.allowed, "reported"))
        elif bare is not None:
            allowed = device.allowed
            rows.append(Fit(device.name, bare.bytes <= allowed, bare.bytes, allowed, "estimated"))
    return tuple(rows)
