"""What to change. Here: what the tile model can compute; each kind of change is a module of its own."""

from __future__ import annotations

from dataclasses import replace

from xlamem.advice.shapes import advise_shape
from xlamem.analysis.padding import is_padded
from xlamem.finding import Advice
from xlamem.report import MemoryReport
from xlamem.units import format_size

__all__ = ["advise_report", "advise_shape"]

#: Chips whose layouts stand for all where the report does not tell the chip: v4 to v7x agree.
DEFAULT_TARGET = "v5e"

#: Padding below this share of what is used is not worth a change.
_WORTH = 0.001
_ITEMS = 8
_PER_ITEM = 4


def advise_report(report: MemoryReport) -> tuple[Advice, ...]:
    """What to change: first what the tile model computes for the padded allocations, then the rules of thumb that
    the report supports. Empty for what is no failure."""
    # Each has rules enough to be loaded only where they apply.
    if report.backend == "tpu":
        from xlamem.advice import tpu_actions as rules
    else:
        from xlamem.advice import gpu_actions as rules  # type: ignore[no-redef]
    return (*_padded(report), *rules.actions(report))


def _padded(report: MemoryReport) -> tuple[Advice, ...]:
    """Changes to the padded allocations of a report that did not fit, most bytes first.

    Equal shapes are advised on once, for all of them.
    """
    space = report.space
    if space is None or report.fits or report.backend != "tpu":
        return ()
    target = report.target.name if report.target else DEFAULT_TARGET
    worth = int((space.used or 0) * _WORTH)
    groups: dict[str, list[int]] = {}
    texts: dict[int, str] = {}  # by the shape's identity: a program repeats a few shapes
    for position, a in enumerate(report.allocations):
        if a.space != space.name or a.shape is None or a.shape.is_tuple or not is_padded(a):
            continue
        text = texts.get(id(a.shape))
        if text is None:
            text = texts[id(a.shape)] = str(a.shape)
        groups.setdefault(text, []).append(position)
    found: list[Advice] = []
    ranked = sorted(groups.values(), key=lambda g: -sum(report.allocations[i].padding_bytes or 0 for i in g))
    for positions in ranked[:_ITEMS]:
        first = report.allocations[positions[0]]
        assert first.shape is not None
        if (first.padding_bytes or 0) * len(positions) < worth:
            continue
        for advice in advise_shape(first.shape, target)[:_PER_ITEM]:
            if len(positions) > 1 and advice.saved:
                in_all = format_size(advice.saved * len(positions))
                text = f"{advice.text} {len(positions)} buffers have this shape: {in_all} saved in all."
                advice = replace(advice, text=text)
            found.append(replace(advice, about=positions[0]))
    return tuple(found)
