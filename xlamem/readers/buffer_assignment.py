"""``*-buffer-assignment.txt``: the exact table of allocations, as XLA's BufferAssignment::ToString prints it.

::

    BufferAssignment:
    allocation 25: size 36700848640, preallocated-temp:
     value: <589 x.1{0} (phi) @0> (size=2097152000,offset=0): f32[524288,1000]{0,1:T(8,128)}

Older files go on with the values' uses and the live ranges; :mod:`xlamem.readers.live_range` reads those.
"""

from __future__ import annotations

import re

from xlamem.readers.assigned import AssignedAllocation, Assignment, Value
from xlamem.readers.hlo_module import shape_of

_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)(.*):")
_VALUE = re.compile(r"value: <\d+ ([\w.\-]+)(\{[\d,]*\})?( \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\): (.+)")
_COLOR = re.compile(r", color (\d+)")
# The words of an allocation come before and after two shapes between bars; a shape holds no words of these.
_PARAMETER = re.compile(r", parameter (\d+), shape \|.*?\| at ShapeIndex \{([\d,]*)\}")
_END = ("Total bytes used:", "Used values:", "HloLiveRange")


def sniff(name: str, head: bytes) -> bool:
    """Whether a file with these first bytes is a buffer assignment."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"BufferAssignment:")


def index_of(text: str | None) -> tuple[int, ...]:
    """The shape index that "{0,1}" spells; () for "{}" and for none."""
    return tuple(int(n) for n in (text or "").strip("{} ").split(",") if n)


def parse(text: str) -> Assignment:
    """The allocations that ``text`` lists. Never raises: what cannot be read is named in ``notes``."""
    allocations: list[AssignedAllocation] = []
    values: list[list[Value]] = []
    skipped = 0
    ended = False
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line == "BufferAssignment:":
            continue
        if line.startswith(_END):
            ended = True
            break
        value = _VALUE.fullmatch(line)
        if value is not None and values:
            name, index, phi, size, offset, shape = value.groups()
            parsed = shape_of(shape)
            skipped += parsed is None
            values[-1].append(Value(name, index_of(index), int(size), int(offset), parsed, phi is not None))
        elif (match := _ALLOCATION.fullmatch(line)) is not None:
            allocations.append(_allocation(match, number))
            values.append([])
        else:
            skipped += 1
    done = tuple(a._replace(values=tuple(v)) for a, v in zip(allocations, values, strict=True))
    truncated = not ended and not text.endswith("\n")
    notes = []
    if truncated:
        notes.append("the buffer assignment breaks off inside a line: allocations may be missing")
    if skipped - truncated > 0:
        notes.append(f"{skipped - truncated} lines of the buffer assignment could not be read")
    if [a.index for a in done] != list(range(len(done))):
        notes.append("allocation numbers are missing or appear twice: totals may be wrong")
    return Assignment(done, tuple(notes), truncated)


def _allocation(match: re.Match[str], line: int) -> AssignedAllocation:
    index, size, words = match.groups()
    color = _COLOR.match(words)
    parameter = _PARAMETER.search(words)
    rest = re.sub(r"\|.*?\|", "", words)
    return AssignedAllocation(
        index=int(index),
        bytes=int(size),
        color=int(color[1]) if color is not None else 0,
        parameter=int(parameter[1]) if parameter is not None else None,
        parameter_index=index_of(parameter[2]) if parameter is not None else (),
        constant=", constant" in rest,
        thread_local=", thread-local" in rest,
        live_out=", maybe-live-out" in rest,
        line=line,
    )
