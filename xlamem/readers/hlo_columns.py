"""Many messages of one kind as columns, at the C speed of the protobuf library.

A message object for each instruction and value takes Python longer than all the rest of a report. In the wire
format, messages one after the other are one message: with fields that repeat, the library makes a column of each.
Where a message may leave a field out, a zero before each message marks where its values begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from xlamem.readers import hlo_schema

# On the wire: the number of the field and its type, and -1 (ten bytes) or 0.
_MINUS_1 = b"\xff" * 9 + b"\x01"
_OF_INSTRUCTION = b"\x48\0" + b"\x68\0" + b"\xa0\x02" + _MINUS_1 + b"\xb0\x02" + _MINUS_1
_VARINT, _BYTES = 0, 2


class Instructions(NamedTuple):
    """The columns of instructions. ``operands`` and ``called`` are ids, those of each row after a -1."""

    names: list[str]
    opcodes: list[str]
    shapes: list[bytes]
    metadata: list[bytes]
    parameter_numbers: list[int]
    tuple_indices: list[int]
    ids: list[int]
    operands: list[int]
    called: list[int]


def instructions(rows: Sequence[bytes]) -> Instructions:
    """The columns of serialized instructions.

    Raises:
        DecodeError: one of them is damaged.
    """
    count = len(rows)
    found = _instructions(_OF_INSTRUCTION + _OF_INSTRUCTION.join(rows) if rows else b"")
    always = (found.names, found.opcodes, found.shapes, found.metadata, found.ids)
    parameters, indices = _rows(found.parameter_numbers, count), _rows(found.tuple_indices, count)
    marks = found.operands.count(-1), found.called.count(-1)
    if all(len(c) == count for c in (*always, parameters, indices)) and marks == (count, count):
        return found._replace(parameter_numbers=parameters, tuple_indices=indices)
    # One has no name or no id, or a damaged one has taken up the next.
    return _one_by_one(rows)


def _instructions(data: bytes) -> Instructions:
    m = _parsed("Instructions", data)
    return Instructions(
        *(list(c) for c in (m.name, m.opcode, m.shape, m.metadata, m.parameter_number, m.tuple_index)),
        *(list(c) for c in (m.id, m.operand_ids, m.called_computation_ids)),
    )


def _one_by_one(rows: Sequence[bytes]) -> Instructions:
    parts = []
    for row in rows:
        one = _instructions(row)
        empty = ("", "", b"", b"", 0, 0, 0)
        # The last of several counts, as in any message.
        filled = [column[-1:] or [nothing] for column, nothing in zip(one[:7], empty, strict=True)]
        parts.append([*filled, [-1, *one.operands], [-1, *one.called]])
    if not parts:
        return Instructions(*([] for _ in Instructions._fields))
    return Instructions(*([*chain.from_iterable(column)] for column in zip(*parts, strict=True)))


def heads(rows: Sequence[bytes]) -> list[tuple[str, str, int]]:
    """Name, opcode and id of serialized instructions.

    Raises:
        DecodeError: one of them is damaged.
    """
    m = _parsed("Heads", b"".join(rows))
    names, opcodes, ids = list(m.name), list(m.opcode), list(m.id)
    if not len(names) == len(opcodes) == len(ids) == len(rows):
        found = _one_by_one(rows)
        names, opcodes, ids = found.names, found.opcodes, found.ids
    return list(zip(names, opcodes, ids, strict=True))


def opcodes(rows: Sequence[bytes]) -> set[str]:
    """The opcodes of serialized instructions.

    Raises:
        DecodeError: one of them is damaged.
    """
    return set(_parsed("Heads", b"".join(rows)).opcode)


def table(name: str, rows: Sequence[bytes]) -> list[list[Any]]:
    """The columns of serialized messages of the kind ``name``, in the order of its fields.

    Raises:
        DecodeError: one of them is damaged.
    """
    if not rows:
        return [[] for _ in hlo_schema.fields(name)]
    mark = b"".join(
        bytes(((number << 3) | (_BYTES if kind in ("bytes*", "string*") else _VARINT), 0))
        for number, kind in hlo_schema.fields(name).values()
    )
    message = _parsed(name, mark + mark.join(rows))
    columns = [_rows(getattr(message, field), len(rows)) for field in hlo_schema.fields(name)]
    if any(len(column) != len(rows) for column in columns):
        alone = (_parsed(name, mark + row) for row in rows)
        columns = [
            list(column)
            for column in zip(
                *([list(getattr(m, field))[-1] for field in hlo_schema.fields(name)] for m in alone), strict=True
            )
        ]
    return columns


def _rows(marked: Any, count: int) -> list[Any]:
    """The values of a column in which a zero comes before each of ``count`` rows."""
    column = list(marked)
    if len(column) == count and not any(column):
        return column
    if len(column) == 2 * count and not any(column[::2]) and all(column[1::2]):
        return column[1::2]
    found: list[Any] = []
    add = found.append
    for value in column:
        if not value:
            add(value)
        elif found:
            found[-1] = value
    return found


def _parsed(name: str, data: bytes) -> Any:
    message = hlo_schema.message(name)()
    message.ParseFromString(data)
    return message
