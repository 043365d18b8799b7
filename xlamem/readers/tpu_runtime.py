"""A running TPU out of HBM: no room for a buffer (E0100) or for a program (E0101), or room in pieces only.

::

    Error allocating device buffer: Attempting to allocate 129.50M. That was not possible. There are 78.17M
    free. Due to fragmentation, the largest contiguous region of free memory is 30.56M.; (0x0x0_HBM0)
    Error loading program 'jit_f': Attempting to reserve 6.48G at the bottom of memory. That was not possible.
    There are 5.91G free, 0B reserved, and 5.91G reservable.
    Could not allocate 67108864 bytes in memory 0x0x0_HBM0; 8388608 bytes allocatable, 9437184 bytes available
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.tpu_message import Message, S, W, messages
from xlamem.report import Kind, MemoryReport, Space
from xlamem.units import Size, size_from

_HEAD = re.compile(rf"Attempting{W}to{W}(allocate|reserve)(?:{W}{S})?")
_NOT_POSSIBLE = re.compile(rf"That{W}was{W}not\b(?:{W}possible\.?)?")
_FREE = re.compile(rf"There{W}are{W}{S}{W}free\b")
_RESERVED = re.compile(rf"free,?{W}{S}{W}reserved\b")
_RESERVABLE = re.compile(rf"reserved,?{W}and{W}{S}{W}reservable\b")
_LARGEST = re.compile(rf"largest{W}contiguous{W}region{W}of{W}free{W}memory{W}is{W}{S}")
_AT_BEST = re.compile(rf"maximum{W}reservable{W}bytes{W}would{W}be{W}{S}")
_FRAGMENTATION = re.compile(rf"Current{W}fragmentation:{W}[^\s;]{{1,40}}")
_DEVICE = re.compile(r"(?<!\w)(\d{1,4}x\d{1,4}x\d{1,4}_([A-Z]{2,8})\d{0,3})(?!\w)")
_BUFFER = re.compile(rf"Error{W}allocating{W}device{W}buffer|RuntimeBufferAllocationFailure")
_LOADING = re.compile(
    rf"Error{W}loading{W}program(?:{W}\\*['\"]([\w.\-<>$]{{1,300}}?)\\*['\"])?"
    r"|RuntimeProgramAllocationFailure"
)
# The table that runtimes of 2020 added.
_CAPACITY = re.compile(rf"HBM{W}capacity{W}{S}")
_ALLOCATED = re.compile(rf"Currently{W}allocated:{W}{S}")
_PROGRAM = re.compile(rf"Program{W}requirement:{W}{S}")

_OLD = re.compile(
    rf"Could{W}not{W}allocate{W}(\d{{1,20}}){W}bytes{W}in{W}memory{W}"
    r"(\d{1,4}x\d{1,4}x\d{1,4}_([A-Z]{2,8})\d{0,3})"
)
_ALLOCATABLE = re.compile(rf"(?<![\d.,])(\d{{1,20}}){W}bytes{W}allocatable\b")
_BYTES_FREE = re.compile(rf"(?<![\d.,])(\d{{1,20}}){W}bytes{W}available\b")


def read_tpu_runtime(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such message in ``lines``, in text order. ``name`` is the input's."""
    found: list[tuple[int, MemoryReport]] = []
    for message in messages(lines, name, _HEAD, 1200):
        report = _report(message)
        if report is not None:
            found.append((message.start, report))
    found += [(message.start, _old(message)) for message in messages(lines, name, _OLD, 400)]
    found.sort(key=lambda pair: pair[0])
    yield from (report for _, report in found)


def _report(message: Message) -> MemoryReport | None:
    buffer, loading = message.before(_BUFFER), message.before(_LOADING)
    tried = message.find(_NOT_POSSIBLE)
    free = message.size(_FREE)
    # Other programs attempt to allocate things too.
    if not (buffer or loading or tried or free is not None):
        return None
    asked = size_from(message.head[2], message.head[3]) if message.head[2] else None
    largest, reservable = message.size(_LARGEST), message.size(_RESERVABLE)
    at_best = message.find(_AT_BEST)
    device = message.find(_DEVICE)
    loads = loading is not None or message.head[1] == "reserve"
    space = Space(
        name=device[2].lower() if device else "hbm",
        capacity=message.size(_CAPACITY),
        used=message.size(_ALLOCATED),
        program=message.size(_PROGRAM),
        requested=asked,
        free=free,
        largest_free=largest,
        reservable=reservable,
        reserved=message.size(_RESERVED),
    )
    notes: list[str] = []
    if loads:
        notes.append("It was asked for a compiled program that was to be loaded.")
    if at_best is not None:
        notes.append(f"Without fragmentation {at_best[1]}{at_best[2]} could be reserved.")
    notes += _remarks(message, device[1] if device else None)
    if loading is not None:
        message.start = min(message.start, loading.start())
    return message.report(
        "tpu-runtime",
        kind=_kind(asked, free, (largest, reservable), loads),
        fits=False,
        program=loading[1] if loading else None,
        spaces=(space,),
        truncated=free is None and message.cut,
        notes=tuple(notes),
    )


def _old(message: Message) -> MemoryReport:
    asked = Size(int(message.head[1]))
    largest, free = _bytes(message.find(_ALLOCATABLE)), _bytes(message.find(_BYTES_FREE))
    return message.report(
        "tpu-runtime",
        kind=_kind(asked, free, (largest,), loads=False),
        fits=False,
        spaces=(Space(name=message.head[3].lower(), requested=asked, free=free, largest_free=largest),),
        truncated=free is None and message.cut,
        notes=tuple(_remarks(message, message.head[2])),
    )


def _kind(asked: Size | None, free: Size | None, in_one_piece: tuple[Size | None, ...], loads: bool) -> Kind:
    """What was asked for would fit the free memory if that were in one piece: fragmentation."""
    fits = asked is not None and free is not None and asked <= free
    if fits and asked is not None and any(piece is not None and piece < asked for piece in in_one_piece):
        return "fragmentation"
    return "program-load" if loads else "runtime-alloc"


def _remarks(message: Message, device: str | None) -> list[str]:
    remarks = [f"Memory {device}"] if device else []
    fragmentation = message.find(_FRAGMENTATION)
    if fragmentation is not None:
        remarks.append(" ".join(fragmentation[0].split()).rstrip("."))
    return remarks


def _bytes(match: re.Match[str] | None) -> Size | None:
    return Size(int(match[1])) if match else None
