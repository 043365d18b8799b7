"""The ``Stats:`` block that XLA's and TensorFlow's allocators print when they run out::

    Stats:
    Limit:                     40231108608
    InUse:                     31785630720
    MaxInUse:                  37595815424
    ...
    LargestFreeBlock:                    0

Older ones end after ``MaxAllocSize``; since 2026 the sizes have units (``89.77GiB``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from xlamem.readers.sentence import FIGURE, GAP, WORD, figure
from xlamem.units import Size

#: The first row too: other programs print "Stats:".
STATS = rf"Stats:{GAP}(?=Limit:)"

_ROW = re.compile(
    rf"{WORD}(Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|Reserved|PeakReserved|LargestFreeBlock):{GAP}"
    rf"(?:{FIGURE})?"
)
#: What may stand between two rows.
_WITHIN = 300


@dataclass(frozen=True, slots=True)
class AllocatorStats:
    """The rows that have a figure. A limit of 0 means none, and 0 reserved that nobody counts."""

    limit: Size | None = None
    in_use: Size | None = None
    peak: Size | None = None
    reserved: Size | None = None
    largest_free: Size | None = None


def read_stats(text: str, at: int) -> tuple[AllocatorStats, int]:
    """The rows from ``at`` on, and the offset behind the last one."""
    found: dict[str, Size | None] = {}
    end = at
    while True:
        row = _ROW.search(text, end, min(len(text), end + _WITHIN))
        if row is None or row[1] in found:
            break
        # The window must not pass for the end of the text: the figure is read again without it.
        row = _ROW.match(text, row.start())
        assert row is not None
        found[row[1]] = figure(row[2], row[3])
        end = row.end()
    limit = found.get("Limit") or None
    in_use = found.get("InUse")
    largest = found.get("LargestFreeBlock")
    if largest == 0 and (in_use is None or limit is None or in_use < limit):
        largest = None  # these allocators print 0 without looking
    return (
        AllocatorStats(
            limit=limit,
            in_use=in_use,
            peak=found.get("MaxInUse"),
            reserved=found.get("Reserved") or None,
            largest_free=largest,
        ),
        end,
    )
