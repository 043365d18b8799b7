"""Padding and layout copies at the peak: where the bytes go that hold no data."""

from __future__ import annotations

from collections.abc import Sequence

from xlamem.analysis.timeline import alive_at_peak
from xlamem.finding import PaddedAxis
from xlamem.report import Allocation, LayoutCopy, MemoryReport


def padding_at_peak(report: MemoryReport, space: str | None = None) -> int:
    """Bytes alive at the peak that are tile padding, arguments and outputs included."""
    return sum(a.padding_bytes or 0 for a in alive_at_peak(report, space))


def padded_axes(rows: Sequence[Allocation]) -> tuple[PaddedAxis, ...]:
    """The padding of ``rows`` alive at a peak by what is padded to what, the most expensive first.

    Where several axes of a value are padded their factors multiply; each is charged in proportion to the
    logarithm of its factor, so that the parts add up to the value's padding.
    """
    from math import log

    found: dict[tuple[str, int, int, str], tuple[float, int]] = {}
    known: dict[int, list[tuple[tuple[str, int, int, str], float]]] = {}
    for a in rows:
        padding = a.padding_bytes
        if a.shape is None or not padding:
            continue
        # By identity: to hash a shape takes long, and the rows hold it.
        if id(a.shape) not in known:
            axes = [axis for axis in a.shape.axis_padding if axis.padded > axis.size]
            logs = [log(axis.padded / axis.size) for axis in axes]
            whole = sum(logs)
            known[id(a.shape)] = [
                ((axis.why, axis.size, axis.padded, axis.change), part / whole)
                for axis, part in zip(axes, logs, strict=True)
            ]
        for key, part in known[id(a.shape)]:
            share, count = found.get(key, (0.0, 0))
            found[key] = share + part * padding, count + 1
    padded = [
        PaddedAxis(why, before, after, round(share), count, text)
        for (why, before, after, text), (share, count) in found.items()
    ]
    return tuple(sorted(padded, key=lambda row: -row.bytes))


def copies_at_peak(report: MemoryReport) -> tuple[LayoutCopy, ...]:
    """The layout copies whose result is alive at the peak, largest first."""
    return tuple(sorted((c for c in report.copies if c.at_peak), key=lambda c: -c.bytes))
