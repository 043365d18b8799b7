"""Many messages of one kind as columns, at the C speed of the protobuf library.

A message object for each instruction and value takes Python longer than all the rest of a report. In the wire
format, messages one after the other are one message: with fields that repeat, the library makes a column of each.
Where a message may leave a field out, a zero before each message marks where its values begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from operator import not_
from typing import Any, NamedTuple

from xlamem.readers import hlo_schema

# On the wire: the number of the field and its type, and -1 (ten bytes).
_OPERANDS = b"\xa0\x02" + b"\xff" * 9 + b"\x01"
_CALLED = b"\xb0\x02" + b"\xff" * 9 + b"\x01"
_VARINT, _BYTES = 0, 2
#: Opcodes that call no computation, among the frequent ones.
_CALLS_NOTHING = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "convert", "slice"),
        *(
            "copy",
            "copy-start",
            "copy-done",
            "async-done",
            "add",
            "subtract",
            "multiply",
            "divide",
            "convolution",
        ),
    }
)


class Instructions(NamedTuple):
    """The columns of instructions. ``operands`` are ids, those of each row after a -1."""

    names: list[str]
    opcodes: list[str]
    shapes: list[bytes]
    metadata: list[bytes]
    ids: list[int]
    operands: list[int]


def instructions(rows: Sequence[bytes]) -> Instructions:
    """The columns of serialized instructions.

    Raises:
        DecodeError: one of them is damaged.
    """
    count = len(rows)
    found = _instructions(_OPERANDS + _OPERANDS.join(rows) if rows else b"")
    if all(len(c) == count for c in found[:5]) and found.operands.count(-1) == count:
        return found
    # One has no name or no id, or a damaged one has taken up the next.
    return _one_by_one(rows)


def _instructions(data: bytes) -> Instructions:
    m = _parsed("Instructions", data)
    return Instructions(m.name[:], m.opcode[:], m.shape[:], m.metadata[:], m.id[:], m.operand_ids[:])


def _one_by_one(rows: Sequence[bytes]) -> Instructions:
    found = Instructions([], [], [], [], [], [])
    for row in rows:
        one = _instructions(row)
        # The last of several counts, as in any message.
        found.names.append(one.names[-1] if one.names else "")
        found.opcodes.append(one.opcodes[-1] if one.opcodes else "")
        found.shapes.append(one.shapes[-1] if one.shapes else b"")
        found.metadata.append(one.metadata[-1] if one.metadata else b"")
        found.ids.append(one.ids[-1] if one.ids else 0)
        found.operands.extend([-1, *one.operands])
    return found


def numbers(rows: Sequence[bytes], opcodes: Sequence[str]) -> list[int | None]:
    """What the opcode of each row counts: a parameter's number, or the element a get-tuple-element takes.

    Raises:
        DecodeError: one of them is damaged.
    """
    found: list[int | None] = [None] * len(rows)
    for opcode, name in (("parameter", "ParameterNumbers"), ("get-tuple-element", "TupleIndices")):
        places = [at for at, other in enumerate(opcodes) if other == opcode]
        (column,) = table(name, [rows[at] for at in places])
        for at, number in zip(places, column, strict=True):
            found[at] = number
    return found


def calls(rows: Sequence[bytes], opcodes: Sequence[str]) -> list[tuple[int, list[int]]]:
    """Of the instructions that call computations: their places in ``rows``, and the computations' ids.

    Raises:
        DecodeError: one of them is damaged.
    """
    places = [at for at, opcode in enumerate(opcodes) if opcode not in _CALLS_NOTHING]
    column = _parsed("Calls", b"".join([_CALLED + rows[at] for at in places])).called_computation_ids[:]
    marks = [k for k, value in enumerate(column) if value == -1]
    if len(marks) != len(places):
        single = [(at, _parsed("Calls", rows[at]).called_computation_ids[:]) for at in places]
        return [(at, ids) for at, ids in single if ids]
    runs = zip(places, marks, [*marks, len(column)][1:], strict=True)
    return [(at, column[start + 1 : end]) for at, start, end in runs if end - start > 1]


def heads(rows: Sequence[bytes]) -> list[tuple[str, str, int]]:
    """Name, opcode and id of serialized instructions.

    Raises:
        DecodeError: one of them is damaged.
    """
    m = _parsed("Heads", b"".join(rows))
    names, opcodes, ids = m.name[:], m.opcode[:], m.id[:]
    if not len(names) == len(opcodes) == len(ids) == len(rows):
        found = _one_by_one(rows)
        names, opcodes, ids = found.names, found.opcodes, found.ids
    return list(zip(names, opcodes, ids, strict=True))


def table(name: str, rows: Sequence[bytes]) -> list[list[Any]]:
    """The columns of serialized messages of the kind ``name``, in the order of its fields.

    Raises:
        DecodeError: one of them is damaged.
    """
    count = len(rows)
    fields = hlo_schema.fields(name)
    every = frozenset(fields)
    # Zeros are left out; only some fields are zero now and then. Other fields are tried without marks.
    for marked in (_OFTEN_ZERO & every, every) if rows else ():
        mark = b"".join([_zero(*fields[field]) for field in fields if field in marked])
        message = _parsed(name, mark + mark.join(rows))
        columns = [getattr(message, field)[:] for field in fields]
        columns = [_rows(c, count) if f in marked else c for f, c in zip(fields, columns, strict=True)]
        if all(len(column) == count for column in columns):
            return columns
    mark = b"".join([_zero(*field) for field in fields.values()])
    alone = [_parsed(name, mark + row) for row in rows]
    return [[getattr(message, field)[-1] for message in alone] for field in fields]


#: A buffer can have the number 0.
_OFTEN_ZERO = frozenset(
    {
        "parameter_number",
        "tuple_index",
        "shape_index",
        "offset",
        "kind",
        "id",
        "logical_buffer_id",
        "buffer_id",
    }
)


def _zero(number: int, kind: str) -> bytes:
    return bytes(((number << 3) | (_BYTES if kind in ("bytes*", "string*") else _VARINT), 0))


def _rows(column: list[Any], count: int) -> list[Any]:
    """The values of a column in which a zero comes before each of ``count`` rows."""
    if len(column) == count and not any(column):
        return column
    # After each zero, what follows it: the value, or the next row's zero.
    return list(compress(chain(column[1:], column[:1]), map(not_, column)))


def _parsed(name: str, data: bytes) -> Any:
    message = hlo_schema.message(name)()
    message.ParseFromString(data)
    return message
