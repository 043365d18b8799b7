"""Two reports side by side: what grew, what is new, what is gone.

Rows are matched by what a user would call the same thing: first everything alike, then op_name and kind
(whatever the size now is), then kind, shape and bytes (the name may have changed).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

from xlamem.analysis.timeline import alive_at_peak
from xlamem.report import Allocation, MemoryReport

What = Literal["grown", "shrunk", "new", "gone"]

#: The sizes of a memory space that are compared, in the order in which they are told.
SIZES = (
    "used", "capacity", "over", "arguments", "outputs", "aliased", "temps", "constants", "padding",
    "fragmentation", "peak",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SizeChange:
    """One size of one memory space in both reports, in bytes; None where a report does not tell."""

    space: str
    name: str
    before: int | None
    after: int | None

    @property
    def change(self) -> int | None:
        """``after - before``."""
        return None if self.before is None or self.after is None else int(self.after) - int(self.before)


@dataclass(frozen=True, slots=True)
class RowChange:
    """Rows that changed alike: ``count`` of them, ``before`` and ``after`` bytes of all together.

    ``old`` is one of them in the first report, ``new`` in the second; None for what is new or gone.
    """

    what: What
    before: int
    after: int
    count: int
    old: Allocation | None
    new: Allocation | None

    @property
    def change(self) -> int:
        """``after - before``."""
        return self.after - self.before

    @property
    def row(self) -> Allocation:
        """The row as it is now, or as it was."""
        found = self.new or self.old
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference between two reports. ``rows`` have the largest change first."""

    before: MemoryReport
    after: MemoryReport
    sizes: tuple[SizeChange, ...]
    rows: tuple[RowChange, ...]
    #: False where a report lists only its largest items: what is "new" may only have been too small before.
    complete: bool
    #: What the second may use, if somebody said so.
    budget: int | None = None

    @property
    def over_budget(self) -> int | None:
        """By how much the second is over the budget; 0 where it is not, None where that is not known."""
        space = self.after.space
        if self.budget is None or space is None or space.used is None:
            return None
        return max(0, int(space.used) - self.budget)

    @property
    def verdict_changed(self) -> bool:
        """Whether one fits and the other does not."""
        return None not in (self.before.fits, self.after.fits) and self.before.fits != self.after.fits


def diff(before: MemoryReport, after: MemoryReport, budget: int | None = None) -> Diff:
    """Compare two reports, of whatever form."""
    old, new = list(alive_at_peak(before)), list(alive_at_peak(after))
    changes: list[tuple[Allocation | None, Allocation | None]] = []
    if not old or not new:
        # A message that lists nothing does not say that anything is gone.
        return Diff(before, after, _sizes(before, after), (), not old and not new, budget)
    _pair(old, new, lambda a: (_kind(a), a.op_name, str(a.shape), int(a.bytes)), changes)
    _pair(old, new, lambda a: (_kind(a), a.op_name) if a.op_name else None, changes)
    _pair(old, new, lambda a: (_kind(a), a.shape and (a.shape.dtype, a.shape.dims), int(a.bytes)), changes)
    changes += [(a, None) for a in old]
    changes += [(None, a) for a in new]
    complete = not (before.partial or after.partial)
    return Diff(before, after, _sizes(before, after), _rows(changes), complete, budget)


def _kind(a: Allocation) -> str:
    # Whether an argument is donated does not make it another argument.
    return "argument" if a.kind == "alias" else a.kind


def _pair(
    old: list[Allocation],
    new: list[Allocation],
    key: Callable[[Allocation], Hashable],
    changes: list[tuple[Allocation | None, Allocation | None]],
) -> None:
    """Take rows with the same key out of both lists, the largest with the largest; no key is no match."""
    waiting: dict[Hashable, list[Allocation]] = defaultdict(list)
    for a in sorted(old, key=lambda a: int(a.bytes)):
        waiting[key(a)].append(a)
    waiting.pop(None, None)
    rest = []
    matched: Counter[int] = Counter()
    for a in sorted(new, key=lambda a: -int(a.bytes)):
        partners = waiting.get(key(a))
        if partners:
            partner = partners.pop()
            matched[id(partner)] += 1
            changes.append((partner, a))
        else:
            rest.append(a)
    old[:] = [a for a in old if not matched[id(a)]]
    new[:] = rest


def _rows(changes: list[tuple[Allocation | None, Allocation | None]]) -> tuple[RowChange, ...]:
    """Changes of size, those that look alike as one."""
    groups: dict[Hashable, list[tuple[Allocation | None, Allocation | None]]] = defaultdict(list)
    for old, new in changes:
        before = 0 if old is None else int(old.bytes)
        after = 0 if new is None else int(new.bytes)
        if before != after:
            named = new or old
            assert named is not None
            shapes = tuple(None if a is None else str(a.shape) for a in (old, new))
            groups[named.space, _kind(named), named.op_name or named.name, shapes, before, after].append(
                (old, new)
            )
    rows = []
    for pairs in groups.values():
        old, new = pairs[0]
        before = sum(int(o.bytes) for o, _ in pairs if o is not None)
        after = sum(int(n.bytes) for _, n in pairs if n is not None)
        what: What = (
            "new" if old is None else "gone" if new is None else "grown" if after > before else "shrunk"
        )
        rows.append(RowChange(what, before, after, len(pairs), old, new))
    return tuple(sorted(rows, key=lambda row: (-abs(row.change), row.what)))


def _sizes(before: MemoryReport, after: MemoryReport) -> tuple[SizeChange, ...]:
    old = {space.name: space for space in before.spaces}
    new = {space.name: space for space in after.spaces}
    found = []
    for name in dict.fromkeys([*old, *new]):
        for size in SIZES:
            first = getattr(old[name], size) if name in old else None
            second = getattr(new[name], size) if name in new else None
            if first is not None or second is not None:
                found.append(SizeChange(name, size, first, second))
    return tuple(found)
