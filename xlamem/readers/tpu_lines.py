"""The sentences with which the TPU compiler refuses a program for its HBM, without a list of what takes it.

::

    Ran out of memory on HBM, the total memory required for HLO temporaries (94.88G) exceeds available HBM
    (15.75G). HLO module: jit_loss.
    Aborting compilation early because it's unlikely to have enough device memory. Requires 320.97G, has
    14.96G available.
    TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes: 95.74G
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.tpu_message import Message, S, W, chip, messages
from xlamem.report import Allocation, MemoryReport, Space
from xlamem.units import Size, size_from

_SHORT = re.compile(rf"Ran{W}out{W}of{W}memory{W}on{W}HBM\b")
_REQUIRED = re.compile(rf"memory{W}required\b[^()]{{0,80}}\(\s*{S}\s*\)")
_AVAILABLE = re.compile(rf"available{W}HBM(?:{W})?\(\s*{S}\s*\)")

_EARLY = re.compile(rf"Aborting{W}compilation{W}early\b")
_REQUIRES = re.compile(rf"Requires{W}{S}")
_HAS = re.compile(rf"\bhas{W}{S}{W}available\b")
#: What the early estimate may take of a chip's memory.
_EARLY_SHARE = 0.95

_CORES = re.compile(rf"TensorCore{W}Hbm{W}usage:?{W}{S}")
_SPARSE = re.compile(rf"SparseCore{W}Hbm{W}usage:?{W}{S}")
_EXCEEDING = re.compile(rf"exceeding{W}available{W}bytes:?{W}{S}")

_REACH = 700


def read_tpu_lines(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such sentence in ``lines``, in text order. ``name`` is the input's."""
    found = [
        *map(_short, messages(lines, name, _SHORT, _REACH)),
        *map(_early, messages(lines, name, _EARLY, _REACH)),
        *map(_cores, messages(lines, name, _CORES, _REACH)),
    ]
    found.sort(key=lambda pair: pair[0])
    yield from (report for _, report in found)


def _short(message: Message) -> tuple[int, MemoryReport]:
    used, capacity = message.size(_REQUIRED), message.size(_AVAILABLE)
    return message.start, message.report(
        "tpu-hbm-line",
        kind="hbm",
        target=chip(capacity),
        program=message.program,
        fits=False,
        spaces=(Space(name="hbm", used=used, capacity=capacity),),
        truncated=capacity is None and message.cut,
        notes=("The figure is all that the program needs at once, its arguments and outputs included.",),
    )


def _early(message: Message) -> tuple[int, MemoryReport]:
    used, capacity = message.size(_REQUIRES), message.size(_HAS)
    return message.start, message.report(
        "tpu-early-abort",
        kind="hbm",
        target=chip(capacity, _EARLY_SHARE),
        program=message.program,
        fits=False,
        spaces=(Space(name="hbm", used=used, capacity=capacity),),
        truncated=capacity is None and message.cut,
        notes=("An estimate, before anything was laid out; what it may take is 95% of the chip's HBM.",),
    )


def _cores(message: Message) -> tuple[int, MemoryReport]:
    dense = size_from(message.head[1], message.head[2])
    sparse, capacity = message.size(_SPARSE), message.size(_EXCEEDING)
    parts = [("TensorCore", dense)] + ([("SparseCore", sparse)] if sparse is not None else [])
    return message.start, message.report(
        "tpu-cores-line",
        kind="hbm",
        target=chip(capacity),
        program=message.program,
        fits=False,
        spaces=(Space(name="hbm", capacity=capacity),),
        allocations=tuple(_part(label, size, message) for label, size in parts),
        partial=sparse is None,
        truncated=capacity is None and message.cut,
        notes=("TensorCore and SparseCore share the HBM; both usages together exceed it.",),
    )


def _part(label: str, size: Size, message: Message) -> Allocation:
    return Allocation(
        space="hbm",
        kind="other",
        bytes=size,
        reported_bytes=size,
        label=label,
        line=message.lines.number_at(message.start),
    )
