"""The padding at the peak, split by what is padded to what and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show import words
from xlamem.show.layout import Column, Line, table, widest, wrap
from xlamem.show.pieces import title

if TYPE_CHECKING:
    from xlamem.finding import PaddedAxis, Peak

_SHOWN = 5

#: Less padding than this share of the peak is not worth a section.
_TRACE = 0.001

_CAUSES = {
    "lane": "the minor axis",
    "sublane": "the second-minor axis",
    "tile": "another axis",
    "scalar": "scalars",
    "packing": "packing of narrow types",
    "element": "wider elements",
    "split": "pieces on several cores",
    "tail": "elements behind the rest",
    "prefix": "a prefix",
}


def is_worth_it(peak: Peak) -> bool:
    """Whether there is padding to speak of."""
    return bool(peak.axes) and peak.padding > _TRACE * peak.live


def cause(axis: PaddedAxis) -> str:
    """Why, in words: "the minor axis"."""
    return _CAUSES.get(axis.why, axis.why)


def chosen(peak: Peak, *, everything: bool) -> tuple[PaddedAxis, ...]:
    """The ways of padding to show, the most expensive first."""
    return peak.axes if everything else tuple(a for a in peak.axes[:_SHOWN] if a.bytes > _TRACE * peak.live)


def lines(peak: Peak, *, width: int, everything: bool) -> Iterator[Line]:
    """The section."""
    share = words.percent(peak.padding, peak.live)
    yield from wrap(
        title("Padding at the peak", f"{words.size(peak.padding)}, {share} of what is alive"), width
    )
    axes = chosen(peak, everything=everything)
    columns = [
        Column("size", widest(["size", *(words.size(axis.bytes) for axis in axes)]), right=True),
        Column("values", max(6, *(len(str(axis.count)) for axis in axes)), right=True),
        Column("cause", widest(["cause", *map(cause, axes)])),
    ]
    columns.append(Column("padded", max(width - 2 - sum(column.width + 2 for column in columns), 20)))
    rows = (
        [
            [[(words.size(axis.bytes), "bold")]],
            [[(str(axis.count), "")]],
            [[(cause(axis), "")]],
            [[(axis.text, "yellow")]],
        ]
        for axis in axes
    )
    yield from table(columns, rows, indent=2)
