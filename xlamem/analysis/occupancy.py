"""Which bytes of one allocation are in use while values come and go.

Values that share bytes at the same time (a loop's views of one buffer, an operand overwritten in place) must
count once. Sums over values would count them twice or more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
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


class _Cluster(NamedTuple):
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
        # Clusters do not overlap, so that they can be found by their starts. Lists beside each other: most
        # clusters are one value, and an object for each takes longer than all else.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._members: list[Extent | _Cluster] = []

    def add(self, extent: Extent) -> None:
        """A value becomes live."""
        start, size, unpadded = extent
        if size <= 0:
            return
        end = start + size
        starts = self._starts
        at = bisect_right(starts, start)
        if (at and self._ends[at - 1] > start) or (at < len(starts) and starts[at] < end):
            first, last = self._touching(extent)
            members = [extent]
            for n in range(first, last):
                members += self._in(n)
            self._replace(first, last, [_cluster(members)])
            return
        # Most values share their bytes with nobody.
        self.live += size
        self.unpadded += unpadded
        starts.insert(at, start)
        self._ends.insert(at, end)
        self._members.insert(at, extent)

    def remove(self, extent: Extent) -> None:
        """A value that was added is no longer needed."""
        start, size, unpadded = extent
        if size <= 0:
            return
        at = bisect_right(self._starts, start) - 1
        if self._members[at] == extent:
            self.live -= size
            self.unpadded -= unpadded
            del self._starts[at], self._ends[at], self._members[at]
            return
        first, last = self._touching(extent)
        members = [m for n in range(first, last) for m in self._in(n)]
        members.remove(extent)
        self._replace(first, last, _clusters(members))

    def _in(self, n: int) -> list[Extent]:
        found = self._members[n]
        return found.members if isinstance(found, _Cluster) else [found]

    def _touching(self, extent: Extent) -> tuple[int, int]:
        """The clusters that share bytes with ``extent``: first and one past the last."""
        last = bisect_left(self._starts, extent.end)
        first = max(0, bisect_right(self._starts, extent.offset) - 1)
        if first < last and self._ends[first] <= extent.offset:
            first += 1
        return first, max(first, last)

    def _replace(self, first: int, last: int, new: list[_Cluster]) -> None:
        for n in range(first, last):
            old = self._members[n]
            self.live -= self._ends[n] - self._starts[n]
            self.unpadded -= old.unpadded
        for cluster in new:
            self.live += cluster.end - cluster.start
            self.unpadded += cluster.unpadded
        self._members[first:last] = [c.members[0] if len(c.members) == 1 else c for c in new]
        self._ends[first:last] = [cluster.end for cluster in new]
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
    if len(members) == 1:
        return _Cluster(start, end, members, members[0].unpadded)
    first = members[0]
    if members.count(first) == len(members):  # views of one buffer
        return _Cluster(start, end, members, first.unpadded)
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
