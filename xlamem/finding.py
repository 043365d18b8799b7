"""What analysis and advice say about a report: plain data, shown by :mod:`xlamem.show`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xlamem.report import Buffer, LayoutCopy, MemoryReport, Provenance


class Finding(NamedTuple):
    """One reason of the verdict. ``name`` is a stable word ("padding", "layout-copies" ...); ``bytes`` what
    is at stake, if that can be said; ``text`` one sentence for people, with its caveat."""

    name: str
    text: str
    bytes: int | None = None


class Check(NamedTuple):
    """Two figures of the report compared with each other, or a printed one with a computed one."""

    name: str
    ok: bool
    text: str


class Fit(NamedTuple):
    """Whether what the report needs would fit another chip; None if the printed figures are too rounded to tell.

    ``needed`` and ``capacity`` in bytes; ``provenance`` is the report's where the same bytes would be needed
    (another TPU) and "estimated" where they would not (a GPU pads nothing). ``least`` is true where
    the input does not say what the arguments take, so that more is needed.
    """

    target: str
    fits: bool | None
    needed: int
    capacity: int
    provenance: Provenance
    least: bool = False


@dataclass(frozen=True, slots=True)
class Advice:
    """One change. Bytes ``before`` and ``after`` are of what is changed (one buffer, or the whole program).

    ``verified`` is true only if the real compiler measured it. ``safe`` says whether the values
    computed stay the same (None: not known); ``value_error`` the largest relative difference seen. ``how`` is
    something to type, ``text`` one sentence with the reason and the caveat. ``about`` names the
    allocation it is for: its position in ``report.allocations``, or None for the whole program.
    """

    name: str
    text: str
    how: str | None = None
    before: int | None = None
    after: int | None = None
    verified: bool = False
    safe: bool | None = None
    value_error: float | None = None
    provenance: Provenance = "computed"
    about: int | None = None

    @property
    def saved(self) -> int | None:
        """``before - after`` in bytes."""
        return None if self.before is None or self.after is None else int(self.before) - int(self.after)


class Node(NamedTuple):
    """A branch of a tree of owners: ``bytes`` at the peak, ``padding`` of them, the largest child first.

    ``known`` says how an owner is known: "exact" from the buffer assignment, "instruction" from what the
    instruction is, "trace" from op_names and live ranges, "name" from the user's names; None on branches that
    are names themselves.
    """

    name: str
    bytes: int
    padding: int
    children: tuple[Node, ...] = ()
    known: str | None = None


@dataclass(frozen=True, slots=True)
class PaddedAxis:
    """One way of padding: ``before`` elements take ``after``; for ``why`` see :class:`xlamem.shape.AxisPadding`.

    ``bytes`` of padding at the peak are due to it, in ``count`` values; ``text`` says it in words.
    """

    why: str
    before: int
    after: int
    bytes: int
    count: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment at which a program needs most of a memory space, from a dump or a module.

    ``position`` counts from 0 in the program order of ``steps`` instructions. ``live`` bytes are needed there,
    ``unpadded`` of them are data, and ``fragmentation`` more is lost to holes in the heap of temporaries.
    ``alive`` temporary values are there, ``others`` are not, the largest first. The trees (``owners``,
    ``scopes`` by op_name, ``sources`` by line) and ``axes`` divide up ``live``; ``copies`` are the layout
    copies whose result is alive, and ``provenance`` is that of the report.
    """

    space: str
    position: int
    steps: int
    instruction: str
    op_name: str | None
    source_file: str | None
    source_line: int | None
    live: int
    unpadded: int
    fragmentation: int | None
    alive: int
    others: Sequence[Buffer]
    owners: Node
    scopes: Node
    sources: Node
    axes: tuple[PaddedAxis, ...]
    copies: tuple[LayoutCopy, ...]
    provenance: Provenance

    @property
    def padding(self) -> int:
        """``live - unpadded``."""
        return self.live - self.unpadded


class Padding(NamedTuple):
    """Bytes of padding. ``lower_bound`` is true where only the largest allocations are known."""

    bytes: int
    provenance: Provenance
    lower_bound: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """A report with all that can be said about it without compiling anything.

    ``headline`` answers "what ran out, by how much, on what" in one line; ``verdict`` says why in one;
    ``findings`` are ordered, the main reason first. ``padding`` is that of the whole memory space, arguments and
    outputs included. From a dump or a module there is a ``peak``; ``report`` then
    lists what is alive there, and ``whole`` is the report as it was read, with every value of every heap.
    """

    report: MemoryReport
    headline: str
    verdict: str
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    fits: tuple[Fit, ...] = ()
    advice: tuple[Advice, ...] = ()
    padding: Padding | None = None
    peak: Peak | None = None
    whole: MemoryReport | None = None
