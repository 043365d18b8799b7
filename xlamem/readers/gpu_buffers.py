"""One of the ``Peak buffers`` of a GPU report, from its fields to an :class:`~xlamem.report.Allocation`.

A buffer is a value at the moment when the program holds the most. Shapes have no tile, so nothing is
padded, and a shape whose bytes would be printed like the ``Size`` gives the size to the byte.
"""

from __future__ import annotations

import re

from xlamem.readers.label import parse_label, parse_pairs
from xlamem.readers.tpu_items import Item
from xlamem.report import Allocation, Provenance

_OPCODE = re.compile(r"[a-z][\w\-]*")
_POINTER = 8


def build_buffer(item: Item, is_parameter: bool) -> Allocation | None:
    """The allocation that ``item`` describes; None without a size and a shape."""
    exact = _exact(item)
    size: int
    provenance: Provenance = "reported"
    if exact is not None:
        size, provenance = exact, "computed"
    elif item.size is not None:
        size = item.size
    else:
        return None
    label = parse_label(item.label or "")
    pairs = parse_pairs(item.operator) if item.operator else {}
    bare = _OPCODE.fullmatch(item.label or "")
    line = pairs.get("source_line", "")
    array = item.shape is not None and not item.shape.is_tuple
    return Allocation(
        space=item.space,
        kind="argument" if is_parameter else "other",
        bytes=size,
        unpadded_bytes=exact if array else None,
        reported_bytes=item.size,
        shape=item.shape,
        name=label.name,
        opcode="parameter" if is_parameter else label.opcode or (bare[0] if bare else pairs.get("op_type")),
        operands=label.operands,
        op_name=pairs.get("op_name") or None,
        label=item.label,
        source_file=pairs.get("source_file") or None,
        source_line=int(line) if line.isdecimal() and len(line) < 10 else None,
        at_peak=True,
        provenance=provenance,
        line=item.line,
    )


def _exact(item: Item) -> int | None:
    """The bytes that the shape takes, if they would be printed as the size was."""
    shape = item.shape
    if shape is None:
        return None
    # A tuple is the table of pointers to its parts.
    size = _POINTER * len(shape.elements) if shape.is_tuple else shape.padded_bytes
    if size >= 1 << 63 or (item.size is not None and not item.size.agrees_with(size)):
        return None
    return None if item.size is None and shape.is_tuple else size
