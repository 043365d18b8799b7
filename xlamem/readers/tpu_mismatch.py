"""An argument whose size in memory is not what the program was compiled for (E0102): two layouts of a shape.

::

    Executable(jit_f) expected parameter 2482 of size 5242880 (bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}) but got
    buffer with incompatible size 1638400 (bf16[16,1280,40]{1,2,0:T(8,128)(2,1)})
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.errors import ParseError
from xlamem.readers.lines import Lines
from xlamem.readers.tpu_message import Message, W, messages
from xlamem.report import Allocation, MemoryReport
from xlamem.shape import Shape
from xlamem.units import Size

_HEAD = re.compile(
    rf"Executable(?:\(([^()\s]{{1,300}})\))?{W}expected{W}parameter{W}(\d{{1,9}}){W}of{W}size{W}(\d{{1,20}})"
    r"(?=[\s\\(])"
)
_GOT = re.compile(rf"got{W}buffer{W}with{W}incompatible{W}size{W}(\d{{1,20}})(?=[\s\\(:.;,\"'])")
_OPEN = re.compile(rf"(?:{W})?\((?=[a-z])")


def read_tpu_mismatch(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such message in ``lines``. ``name`` is the input's."""
    for message in messages(lines, name, _HEAD, 900):
        yield _report(message)


def _report(message: Message) -> MemoryReport:
    expected_shape = _shape(message, message.head.end())
    found = [_argument(message, "expected", message.head[3], expected_shape)]
    got = message.find(_GOT)
    if got is not None:
        found.append(_argument(message, "given", got[1], _shape(message, got.end())))
    tiled = any(a.shape is not None and a.shape.layout is not None and a.shape.layout.tiles for a in found)
    return message.report(
        "layout-mismatch",
        kind="other",
        backend="tpu" if tiled else None,
        program=message.head[1],
        allocations=tuple(found),
        truncated=got is None and message.cut,
        notes=(
            "Not out of memory: the program and the array disagree on how the array is laid out in memory.",
        ),
    )


def _shape(message: Message, at: int) -> Shape | None:
    bracket = _OPEN.match(message.lines.text, at, message.until)
    if bracket is None:
        return None
    try:
        shape, end = Shape.parse_prefix(message.lines.text, bracket.end())
    except ParseError:
        return None
    message.end = max(message.end, min(end + 1, message.until))
    return shape


def _argument(message: Message, label: str, size: str, shape: Shape | None) -> Allocation:
    exact = Size(int(size))
    return Allocation(
        space="hbm",
        kind="argument",
        bytes=exact,
        unpadded_bytes=shape.unpadded_bytes if shape is not None and shape.padded_bytes == exact else None,
        reported_bytes=exact,
        shape=shape,
        name=f"parameter {message.head[2]}",
        label=label,
        provenance="reported",
        line=message.lines.number_at(message.start),
    )
