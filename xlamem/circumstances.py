"""What is known of a GPU's failure beyond its figures: which of a program's allocations it was, and what XLA was doing.

Readers write this into ``report.notes``; advice goes by it.
"""

from __future__ import annotations

from collections.abc import Iterable

from xlamem.report import Allocation, Space
from xlamem.units import Size

AUTOTUNING = "It failed while XLA was timing variants of a kernel (autotuning)."
GRAPHS = "It failed around a CUDA graph (command buffer)."

#: Rows of the buffer assignment by the name of their :class:`~xlamem.report.Space` field, in the order in
#: which an execution allocates them: arguments and constants are there before it starts.
ROWS = {
    "temps": "preallocated temp",
    "outputs": "maybe_live_out",
    "constants": "constant",
    "arguments": "parameter",
}
_WORDS = {
    "temps": "the program's temporaries did not fit beside its arguments",
    "outputs": "the program's results did not fit beside its arguments",
    "constants": "the program's constants did not fit",
    "arguments": "the program's arguments did not fit",
}


def failed_rows(space: Space) -> tuple[str, ...]:
    """The fields of ``space`` that the requested bytes would have been printed as; what is allocated
    first comes first. Empty where nothing matches."""
    if not space.requested:
        return ()
    return tuple(field for field in ROWS if _same(getattr(space, field), space.requested))


def failed_row_note(space: Space) -> str | None:
    """A sentence that says which row failed, if the figures tell."""
    rows = failed_rows(space)
    if not rows:
        return None
    first = rows[0]
    if len(rows) == 1:
        return f"The requested bytes are the {ROWS[first]} row: {_WORDS[first]}."
    names = " and the ".join(ROWS[row] for row in rows)
    return f"The requested bytes are the {names} row alike: {_WORDS[first]}, or one of the others."


def failed_buffer_note(asked: int, buffers: Iterable[tuple[int | None, Allocation]]) -> str | None:
    """A sentence that says which of the numbered buffers was asked for, if one is as large to the byte."""
    for number, allocation in buffers:
        if allocation.provenance == "computed" and int(allocation.bytes) == int(asked):
            which = f"buffer {number}" if number else "a listed buffer"
            return f"The requested bytes are {which}: {allocation.shape}."
    return None


def _same(row: int | None, asked: int) -> bool:
    if not row:
        return False
    if isinstance(asked, Size) and asked.slack:
        # Both are rounded: the same digits are needed.
        return int(row) == int(asked)
    return row.agrees_with(int(asked)) if isinstance(row, Size) else int(row) == int(asked)
