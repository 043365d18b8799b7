"""What analysis and advice say about a report: plain data, shown by :mod:`xlamem.show`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from xlamem.report import MemoryReport, Provenance


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
    """Whether what the report needs would fit another chip.

    ``needed`` and ``capacity`` in bytes; ``provenance`` is "reported" where the same bytes would be needed
    (another TPU) and "estimated" where they would not (a GPU pads nothing).
    """

    target: str
    fits: bool
    needed: int
    capacity: int
    provenance: Provenance


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


@dataclass(frozen=True, slots=True)
class Explanation:
    """A report with all that can be said about it without compiling anything.

    ``headline`` answers "what ran out, by how much, on what" in one line; ``verdict`` says why in one;
    ``findings`` are ordered, the main reason first.
    """

    report: MemoryReport
    headline: str
    verdict: str
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    fits: tuple[Fit, ...] = ()
    advice: tuple[Advice, ...] = ()
