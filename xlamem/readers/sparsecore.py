"""The SparseCore's compiler out of one of its memories (E3000). It counts in words of four bytes.

::

    'memref.alloca' op current allocation offset upper bound (140704 words) exceeds the legitimate user
    allocatable offset upper bound (131071 words) in memory space 201 when allocating 23440 words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.tpu_message import Message, W, messages
from xlamem.report import Allocation, MemoryReport, Space
from xlamem.units import Size

WORD = 4

_HEAD = re.compile(rf"current{W}allocation{W}offset{W}upper{W}bound{W}\((\d{{1,15}}){W}words\)")
_BOUND = re.compile(rf"allocatable{W}offset{W}upper{W}bound{W}\((\d{{1,15}}){W}words\)")
_SPACE = re.compile(rf"in{W}memory{W}space{W}(\d{{1,4}})(?=[\s\\.,;])")
_ASKED = re.compile(rf"when{W}allocating{W}(\d{{1,15}}){W}words\b")
_MEMREF = re.compile(r"memref<[^<>\n]{1,120}>")
_OPERATION = re.compile(rf"Hlo-Op:(?:{W})?([\w.\-]{{1,200}})")
_NAMES = {"0": "smem", "201": "tilespmem", "202": "spmem", "203": "hbm", "204": "sflag"}


def read_sparsecore(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such message in ``lines``. ``name`` is the input's."""
    for message in messages(lines, name, _HEAD, 900):
        yield _report(message)


def _report(message: Message) -> MemoryReport:
    used, capacity, asked = _words(message.head), _words(message.find(_BOUND)), _words(message.find(_ASKED))
    number = message.find(_SPACE)
    space = _NAMES.get(number[1], f"memory space {number[1]}") if number else "sparsecore"
    notes = ["A SparseCore's memory; its compiler counts in words of 4 bytes."]
    operation = message.before(_OPERATION)
    allocations: tuple[Allocation, ...] = ()
    if asked is not None:
        memref = _MEMREF.search(message.lines.text, message.end, message.until)
        allocations = (
            Allocation(
                space=space,
                kind="scoped",
                bytes=asked,
                reported_bytes=asked,
                name=operation[1].split(":")[0] if operation else None,
                label=memref[0] if memref else None,
                line=message.lines.number_at(message.start),
            ),
        )
    return message.report(
        "sparsecore-alloca",
        kind="hbm" if space == "hbm" else "onchip",
        fits=False,
        spaces=(Space(name=space, used=used, capacity=capacity, requested=asked),),
        allocations=allocations,
        truncated=asked is None and message.cut,
        notes=tuple(notes),
    )


def _words(match: re.Match[str] | None) -> Size | None:
    return Size(WORD * int(match[1])) if match else None
