"""Padding and layout copies at the peak: where the bytes go that hold no data."""

from __future__ import annotations

from collections.abc import Iterable

from xlamem.analysis.timeline import alive_at_peak
from xlamem.finding import PaddedAxis
from xlamem.report import Allocation, LayoutCopy, MemoryReport


def padding_at_peak(report: MemoryReport, space: str | None = None) -> int:
    """Bytes alive at the peak that are tile padding, arguments and outputs included."""
    return sum(a.padding_bytes or 0 for a in alive_at_peak(report, space))


def padded_axes(rows: Iterable[Allocation]) -> tuple[PaddedAxis, ...]:
    """The padding of ``rows`` alive at a peak by what is padded to what, the most expensive first.

    Where several axes of a value are padded their factors multiply; each is charged in proportion to the
    logarithm of its factor, so that the parts add up to the value's padding.
    """
    from math import log

    found: dict[tuple[str, int, int, str], tuple[float, int]] = {}
    for a in rows:
        if a.shape is None or not a.padding_bytes:
            continue
        axes = [axis for axis in a.shape.axis_padding if axis.padded > axis.size]
        whole = sum(log(axis.padded / axis.size) for axis in axes)
        for axis in axes:
            key = axis.why, axis.size, axis.padded, axis.change
            share, count = found.get(key, (0.0, 0))
            part = log(axis.padded / axis.size) / whole * a.padding_bytes
            found[key] = share + part, count + 1
    padded = [
        PaddedAxis(why, before, after, round(share), count, text)
        for (why, before, after, text), (share, count) in found.items()
    ]
    return tuple(sorted(padded, key=lambda row: -row.bytes))


def copies_at_peak(report: MemoryReport) -> tuple[LayoutCopy, ...]:
    """The layout copies whose result is alive at the peak, largest first."""
    return tuple(sorted((c for c in report.copies if c.at_peak), key=lambda c: -c.bytes))
