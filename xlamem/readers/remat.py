"""Rematerialization that could not save enough: a warning, which programs that fit draw too.

::

    Can't reduce memory use below 8.71GiB (9352324505 bytes) by rematerialization; only reduced to 37.50GiB
    (40265319424 bytes), down from 37.50GiB (40265319424 bytes) originally
    XLA::TPU post optimization rematerialization limit 8.71G = 95% hbm (14.96G) - (arguments (6.25G) -
    aliased_output(0B)) - overlays (640.0K)
    XLA::TPU rematerialization hbm reduction:  37.50G => 37.50G

The three belong to one pass over one program and become one report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import sentence, source
from xlamem.readers.tpu_message import Message, S, W, chip, messages
from xlamem.report import MemoryReport, Space
from xlamem.units import Size, format_size, size_from

_G = rf"(?:{W})?"
_BYTES = rf"(?:{_G}\((\d{{1,20}}){W}bytes\))?"
_WARNING = re.compile(rf"Can\S{{1,8}}t{W}reduce{W}memory{W}use{W}below(?:{W}{S}{_BYTES})?")
_REDUCED = re.compile(rf"reduced{W}to{W}{S}{_BYTES}")
_FROM = re.compile(rf"down{W}from{W}{S}{_BYTES}(?:{W}originally)?")

_LIMIT = re.compile(rf"rematerialization{W}limit{W}{S}(?={_G}=)")
_SHARE = re.compile(rf"(\d{{1,3}})%{W}hbm{_G}\({S}\)")
_ARGUMENTS = re.compile(rf"arguments{_G}\({S}\)")
_ALIASED = re.compile(rf"aliased_output{_G}\({S}\)")
_OVERLAYS = re.compile(rf"overlays{_G}\({S}\)")

_REDUCTION = re.compile(rf"rematerialization{W}hbm{W}reduction:{W}{S}{W}=>{W}{S}")
#: So near together the lines are of one pass.
_NEAR = 3000


@dataclass
class _Pass:
    """What was said about one pass of rematerialization."""

    start: int
    end: int
    warning: Message | None = None
    limit: Message | None = None
    reduction: Message | None = None


def read_remat(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every pass of which ``lines`` tell, in text order. ``name`` is the input's."""
    found = [("warning", m) for m in messages(lines, name, _WARNING, 500)]
    found += [("limit", m) for m in messages(lines, name, _LIMIT, 300)]
    found += [("reduction", m) for m in messages(lines, name, _REDUCTION, 1)]
    found.sort(key=lambda pair: pair[1].start)
    current: _Pass | None = None
    for kind, message in found:
        if current is not None and (
            getattr(current, kind) is not None or message.start - current.end > _NEAR
        ):
            yield _report(current, lines, name)
            current = None
        if current is None:
            current = _Pass(message.start, message.head.end())
        setattr(current, kind, message)
        current.end = message.head.end()
    if current is not None:
        yield _report(current, lines, name)


def _report(told: _Pass, lines: Lines, name: str) -> MemoryReport:
    figures: dict[str, Size | None] = {}
    notes: list[str] = []
    target = None
    main = told.warning or told.limit or told.reduction
    assert main is not None
    if told.reduction is not None:
        match = told.reduction.head
        before: Size | None = size_from(match[1], match[2])
        figures["used"] = size_from(match[3], match[4])
    else:
        before = None
    if told.limit is not None:
        figures["goal"] = size_from(told.limit.head[1], told.limit.head[2])
        figures["arguments"] = told.limit.size(_ARGUMENTS)
        figures["aliased"] = told.limit.size(_ALIASED)
        figures["overlays"] = told.limit.size(_OVERLAYS)
        share = told.limit.find(_SHARE)
        if share is not None:
            hbm = size_from(share[2], share[3])
            target = chip(hbm, int(share[1]) / 100) if int(share[1]) else None
            notes.append(f"The limit starts from {share[1]}% of the HBM, {share[2]}{share[3]}.")
    if told.warning is not None:
        goal = _exact(told.warning.head) if told.warning.head[1] else None
        reached = _exact(told.warning.find(_REDUCED))
        before = _exact(told.warning.find(_FROM)) or before
        figures["goal"] = goal if goal is not None else figures.get("goal")
        figures["used"] = reached if reached is not None else figures.get("used")
    if before is not None:
        notes.insert(0, f"Before rematerialization: {format_size(before)}.")
    notes.append("A warning of the compiler's: it also comes with programs that fit.")
    return MemoryReport(
        kind="remat-warning",
        severity="warning" if told.warning is not None else "info",
        source=source(lines, name, "remat", told.start, max(told.end, main.end)),
        message=sentence(lines.text, main.start, main.end),
        # GPUs draw the warning too; the other two lines are a TPU's.
        backend="tpu" if told.limit is not None or told.reduction is not None else None,
        target=target,
        spaces=(Space(name="hbm", **figures),),
        truncated=told.warning is not None and figures.get("used") is None and told.warning.cut,
        notes=tuple(notes),
    )


def _exact(match: re.Match[str] | None) -> Size | None:
    """The bytes in brackets where they are printed, the rounded figure before them where not."""
    if match is None:
        return None
    return Size(int(match[3])) if match[3] else size_from(match[1], match[2])
