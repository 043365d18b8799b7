"""Which bytes of one allocation are in use while values come and go.

Values that share bytes at the same time (a loop's views of one buffer, an operand overwritten in place) must
count once. Sums over values would count them twice or more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import NamedTuple


class Extent(NamedTuple):
    """Where a value lies: ``offset`` and ``bytes`` in its allocation, ``unpadded`` of them are data."""

    offset: int
    bytes: int
    unpadded: int

    @property
    def end(self) -> int:
        """The offset just after it."""
        return self.offset + self.bytes


@dataclass(slots=True)
class _Cluster:
    """Values that overlap each other, directly or through others."""

    start: int
    end: int
    members: list[Extent]
    unpadded: int


class Occupancy:
    """The bytes in use: ``live`` with padding, ``unpadded`` without. Values come and go one at a time."""

    def __init__(self) -> None:
        self.live = 0
        self.unpadded = 0
        # Clusters do not overlap, so that they can be found by their starts.
        self._starts: list[int] = []
        self._clusters: list[_Cluster] = []

    def add(self, extent: Extent) -> None:
        """A value becomes live."""
        if extent.bytes <= 0:
            return
        first, last = self._touching(extent)
        if first == last:  # most values share their bytes with nobody
            self.live += extent.bytes
            self.unpadded += extent.unpadded
            self._starts.insert(first, extent.offset)
            self._clusters.insert(first, _Cluster(extent.offset, extent.end, [extent], extent.unpadded))
            return
        members = [extent]
        for cluster in self._clusters[first:last]:
            members += cluster.members
        self._replace(first, last, [_cluster(members)])

    def remove(self, extent: Extent) -> None:
        """A value that was added is no longer needed."""
        if extent.bytes <= 0:
            return
        first, last = self._touching(extent)
        if last - first == 1 and len(self._clusters[first].members) == 1:
            self.live -= extent.bytes
            self.unpadded -= extent.unpadded
            del self._starts[first], self._clusters[first]
            return
        members = [m for cluster in self._clusters[first:last] for m in cluster.members]
        members.remove(extent)
        self._replace(first, last, _clusters(members))

    def _touching(self, extent: Extent) -> tuple[int, int]:
        """The clusters that share bytes with ``extent``: first and one past the last."""
        last = bisect_left(self._starts, extent.end)
        first = max(0, bisect_right(self._starts, extent.offset) - 1)
        if first < last and self._clusters[first].end <= extent.offset:
            first += 1
        return first, max(first, last)

    def _replace(self, first: int, last: int, new: list[_Cluster]) -> None:
        for old in self._clusters[first:last]:
            self.live -= old.end - old.start
            self.unpadded -= old.unpadded
        for cluster in new:
            self.live += cluster.end - cluster.start
            self.unpadded += cluster.unpadded
        self._clusters[first:last] = new
        self._starts[first:last] = [cluster.start for cluster in new]


def _clusters(members: list[Extent]) -> list[_Cluster]:
    """``members`` split into groups that share no bytes, in order of offset."""
    groups: list[list[Extent]] = []
    end = -1
    for member in sorted(members, key=lambda m: m.offset):
        if member.offset >= end:
            groups.append([])
        groups[-1].append(member)
        end = max(end, member.end)
    return [_cluster(group) for group in groups]


def _cluster(members: list[Extent]) -> _Cluster:
    start = min(m.offset for m in members)
    end = max(m.end for m in members)
    chosen = representatives(members)
    covered = sum(m.bytes for m in chosen)
    # Bytes that only partly overlapping values cover are not claimed to be padding.
    unpadded = sum(m.unpadded for m in chosen) + (end - start - covered)
    return _Cluster(start, end, members, unpadded)


def representatives(members: list[Extent]) -> list[Extent]:
    """Those of overlapping values that stand for the rest: the largest, of equal ones that with most data.

    So padding is never counted where another value uses the same bytes, and never twice. In order of offset.
    """
    chosen: list[Extent] = []
    starts: list[int] = []
    for member in sorted(members, key=lambda m: (-m.bytes, -m.unpadded, m.offset)):
        # Those chosen do not overlap, so only the neighbours can.
        at = bisect_left(starts, member.offset)
        if (at == len(starts) or chosen[at].offset >= member.end) and (
            at == 0 or chosen[at - 1].end <= member.offset
        ):
            starts.insert(at, member.offset)
            chosen.insert(at, member)
    return chosen
