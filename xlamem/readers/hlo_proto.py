"""``*.hlo.pb``: an HloProto with or without its buffer assignment, or a bare HloModuleProto.

Only the fields of :mod:`xlamem.readers.hlo_schema` are decoded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from xlamem.readers import hlo_schema
from xlamem.readers.assigned import AssignedAllocation, Assignment, LiveRanges, Value
from xlamem.readers.hlo_module import CALLERS, Computation, HloModule, Instruction
from xlamem.readers.hlo_proto_shapes import sized_at
from xlamem.shape import Shape

#: Opcodes that call no computation, among the frequent ones.
_CALLS_NOTHING = frozenset(
    {
        "parameter",
        "constant",
        "get-tuple-element",
        "tuple",
        "bitcast",
        "copy",
        "copy-start",
        "copy-done",
        "add",
    }
)

_FREE = 1  # the kind of an event; the others are allocations


@dataclass(frozen=True, slots=True)
class ProtoContents:
    """What a .pb holds; None for what it does not."""

    module: HloModule | None = None
    assignment: Assignment | None = None
    live: LiveRanges | None = None
    notes: tuple[str, ...] = ()


def sniff(name: str, head: bytes) -> bool:
    """Whether a file with these first bytes may be an HLO proto: field 1 is a module, or a module's name."""
    if len(head) < 4 or head[0] != 0x0A:
        return False
    length, at = _varint(head, 1)
    if at < 0:
        return False
    # HloProto: field 1 is the module, whose field 1 is the name. HloModuleProto: field 1 is the name itself.
    inner = head[at : at + 1]
    if inner == b"\x0a" and length > 4:
        size, start = _varint(head, at + 1)
        return start > 0 and _is_name(head[start : start + min(size, 200)])
    return _is_name(head[at : at + min(length, 200)]) and head[at + length : at + length + 1] == b"\x12"


def read(data: bytes) -> ProtoContents:
    """Decode an HloProto or an HloModuleProto. Never raises: what cannot be read is named in ``notes``."""
    try:
        hlo_schema.message("HloProto")
    except ImportError:
        return ProtoContents(notes=("to read .pb files install protobuf (pip install protobuf)",))
    from google.protobuf.message import DecodeError

    try:
        proto = _parsed("HloProto", data)
        if not proto.hlo_module.computations:
            bare = _try(DecodeError, "HloModule", data)
            if bare is not None and bare.computations:
                proto.hlo_module.CopyFrom(bare)
    except DecodeError:
        bare = _try(DecodeError, "HloModule", data)
        if bare is None or not bare.computations:
            return ProtoContents(
                notes=("the .pb cannot be decoded: it is cut off, damaged or still being written",)
            )
        proto = hlo_schema.message("HloProto")(hlo_module=bare)
    return _contents(proto)


def read_assignment(data: bytes) -> Assignment | None:
    """The allocations of a bare BufferAssignmentProto (``serialized_buffer_assignment_proto``); or None."""
    from google.protobuf.message import DecodeError

    proto = _try(DecodeError, "BufferAssignment", data)
    return None if proto is None or not proto.buffer_allocations else _assignment(proto, _places(proto, None))


def _parsed(name: str, data: bytes) -> Any:
    proto = hlo_schema.message(name)()
    proto.ParseFromString(data)
    return proto


def _try(error: type[Exception], name: str, data: bytes) -> Any | None:
    try:
        return _parsed(name, data)
    except error:
        return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    return 0, -1


def _is_name(data: bytes) -> bool:
    return bool(data) and all(32 < byte < 127 for byte in data)


def _contents(proto: Any) -> ProtoContents:
    module = None
    reader = None
    if proto.hlo_module.computations:
        reader = _ModuleReader(proto.hlo_module)
        module = reader.module
    if not proto.HasField("buffer_assignment"):
        return ProtoContents(module)
    places = _places(proto.buffer_assignment, None if reader is None else reader.instruction)
    assignment = _assignment(proto.buffer_assignment, places)
    live = None if module is None else _traces(proto.buffer_assignment, module, places)
    return ProtoContents(module, assignment, live)


class _ModuleReader:
    """An HloModuleProto as a module. The insides of fusions are taken apart when somebody asks for them."""

    def __init__(self, proto: Any) -> None:
        self.module = module = HloModule(proto.name)
        self.frames = _Frames(proto.stack_frame_index)
        self.order = {s.key: s.value for s in proto.schedule.sequences}
        module.scheduled = bool(self.order)
        module.aliased_parameters = frozenset(e.parameter_number for e in proto.input_output_alias.entries)
        computations = {c.id: c for c in proto.computations}
        self.computation_names = {n: c.name for n, c in computations.items()}
        self.inside = inside = {n: c.instructions for n, c in computations.items()}
        entry = next(
            (
                n
                for n, c in computations.items()
                if c.name == proto.entry_computation_name or n == proto.entry_computation_id
            ),
            None,
        )
        module.entry = None if entry is None else self.computation_names[entry]
        #: The instructions as decoded, by id, which is unique in a module; only those that can have a buffer.
        self.by_id: dict[int, Any] = {}
        fused: set[int] = set()
        self.unseen: set[int] = set(computations)
        # Two thirds of a module are insides of fusions, which are not looked into: what runs is walked instead.
        waiting = [*computations] if entry is None else [entry]
        while waiting:
            n = waiting.pop()
            if n not in self.unseen or n in fused:
                continue
            self._look_into(n)
            for i in inside[n]:
                opcode = i.opcode
                if opcode == "fusion":
                    fused.update(i.called_computation_ids)
                elif opcode not in _CALLS_NOTHING:
                    waiting.extend(i.called_computation_ids)
        for n, c in computations.items():
            instructions = inside[n]
            module.computations[c.name] = Computation(
                c.name,
                partial(self._instructions, c, instructions),
                partial(_opcodes, instructions),
                partial(_root, c, instructions),
            )
        module.fused.update(self.computation_names[n] for n in self.unseen)

    def instruction(self, n: int) -> Any | None:
        """The instruction that has the id ``n``, which has a buffer: it is then no inside of a fusion."""
        found = self.by_id.get(n)
        if found is None and self.unseen:
            # What a reduction inside a fusion applies has buffers too. An id's upper half is its computation's.
            for computation in [n >> 32] if n >> 32 in self.unseen else [*self.unseen]:
                self._look_into(computation)
                self.module.fused.discard(self.computation_names[computation])
            found = self.by_id.get(n)
        return found

    def _look_into(self, computation: int) -> None:
        self.unseen.remove(computation)
        found = self.inside[computation] = list(self.inside[computation])
        self.by_id.update([(i.id, i) for i in found])

    def _called(self, i: Any) -> tuple[str, ...]:
        names = self.computation_names
        return tuple([names[n] for n in i.called_computation_ids if n in names])

    def _instructions(self, c: Any, instructions: Sequence[Any]) -> list[Instruction]:
        name, base = c.name, c.id << 32
        place, known = self.frames.place, self.frames.known
        made: dict[int, Instruction] = {}
        names = {i.id: i.name for i in instructions}
        new = tuple.__new__
        for i in instructions:
            opcode = i.opcode
            called: tuple[str, ...] = ()
            operands: tuple[str, ...] = ()
            number = None
            if opcode == "parameter":
                number = i.parameter_number
            elif opcode != "constant":
                if opcode == "get-tuple-element":
                    number = i.tuple_index
                elif opcode in CALLERS:
                    called = self._called(i)
                    if opcode == "while":
                        called = called[::-1]  # stored body first, run and printed condition first
                try:
                    operands = tuple([names[o] for o in i.operand_ids])
                except KeyError:
                    # Ids were once local to the computation; today its id is their upper half.
                    operands = tuple([names.get(o) or names.get(base | o, "") for o in i.operand_ids])
            shape, size = sized_at(i.shape)
            where = i.metadata
            op_name, file, line = known[where] if where in known else place(where)
            own = i.id
            # Half the time of Instruction(...), which is a function in Python.
            made[own] = new(
                Instruction,
                (names[own], opcode, shape, size, name, operands, called, number, op_name, file, line),
            )
        sequence = self.order[c.id].instruction_ids[:] if c.id in self.order else ()
        if len(sequence) == len(made):
            try:
                return [made[i] for i in sequence]
            except KeyError:
                pass
        return list(made.values())


def _root(c: Any, instructions: Sequence[Any]) -> tuple[str, str] | None:
    """Name and opcode of a computation's root. It comes last, since operands come first; damage aside."""
    wanted = c.root_id, c.id << 32 | c.root_id
    if not instructions:
        return None
    found = instructions[-1]
    if found.id not in wanted:
        found = next((i for i in instructions if i.id in wanted), None)
    return None if found is None else (found.name, found.opcode)


def _opcodes(instructions: Sequence[Any]) -> set[str]:
    return {i.opcode for i in instructions}


class _Frames:
    """Where instructions come from: metadata, with the module's stack frame tables."""

    def __init__(self, index: Any) -> None:
        self.files = list(index.file_names)
        self.locations = [(p.file_name_id, p.line) for p in index.file_locations]
        self.frames = [f.file_location_id for f in index.stack_frames]
        self.known: dict[bytes, tuple[str | None, str | None, int | None]] = {b"": (None, None, None)}

    def place(self, data: bytes) -> tuple[str | None, str | None, int | None]:
        """op_name, file and line of serialized metadata: its own, or its stack frame's."""
        found = self.known.get(data)
        if found is None:
            found = self.known[data] = self._decoded(data)
        return found

    def _decoded(self, data: bytes) -> tuple[str | None, str | None, int | None]:
        from google.protobuf.message import DecodeError

        try:
            metadata = _parsed("Metadata", data)
        except DecodeError:
            return None, None, None
        op_name = metadata.op_name or None
        if metadata.source_file:
            return op_name, metadata.source_file, metadata.source_line or None
        # Ids count from 1; 0 is none.
        frame = metadata.stack_frame_id
        location = self.frames[frame - 1] if 0 < frame <= len(self.frames) else 0
        file, line = self.locations[location - 1] if 0 < location <= len(self.locations) else (0, 0)
        return op_name, self.files[file - 1] if 0 < file <= len(self.files) else None, line or None


#: A logical buffer: whose result it is, which part of it, and that part's shape.
_Place = tuple[str, tuple[int, ...], Shape | None]


def _places(proto: Any, instruction: Callable[[int], Any | None] | None) -> dict[int, _Place]:
    """The logical buffers of a buffer assignment, by their ids."""
    found: dict[int, _Place] = {}
    for buffer in proto.logical_buffers:
        location = buffer.defined_at
        index = _index(location.shape_index)
        made = None if instruction is None else instruction(location.instruction_id)
        if made is None:
            found[buffer.id] = location.instruction_name, index, None
        else:
            found[buffer.id] = made.name, index, sized_at(made.shape, index)[0]
    return found


def _assignment(proto: Any, places: dict[int, _Place]) -> Assignment:
    missing = 0
    allocations = []
    new = tuple.__new__
    for a in proto.buffer_allocations:
        values = []
        for assigned in a.assigned:
            place = places.get(assigned.logical_buffer_id)
            if place is None:
                missing += 1
                continue
            name, index, shape = place
            values.append(new(Value, (name, index, assigned.size, assigned.offset, shape, False)))
        parameter = a.is_entry_computation_parameter
        allocations.append(
            AssignedAllocation(
                index=a.index,
                bytes=a.size,
                color=a.color,
                parameter=a.parameter_number if parameter else None,
                parameter_index=tuple(a.parameter_shape_index) if parameter else (),
                constant=a.is_constant,
                thread_local=a.is_thread_local,
                live_out=a.maybe_live_out,
                values=tuple(values),
            )
        )
    notes = (f"{missing} values of the buffer assignment are not defined in it",) if missing else ()
    return Assignment(tuple(allocations), notes)


@lru_cache(maxsize=4096)
def _index(packed: bytes) -> tuple[int, ...]:
    """The numbers of a packed field."""
    numbers, at = [], 0
    while 0 <= at < len(packed):
        number, at = _varint(packed, at)
        numbers.append(number)
    return tuple(numbers)


def _traces(proto: Any, module: HloModule, places: dict[int, _Place]) -> LiveRanges:
    """Live ranges from the heap simulator's own record of what it allocated and freed, in program order.

    A value starts where its instruction stands. Frees are recorded after the allocations of the same
    position, without saying at which one: a value ends at its last use before the next allocation, or, where
    no use is seen (loops hide them), at the latest allocation before the free. The peak does not change.
    """
    positions: dict[str, int] = {}
    uses: dict[str, list[int]] = {}
    for at, instruction in enumerate(module.sequence):
        positions[instruction.name] = at
        for operand in instruction.operands:
            uses.setdefault(operand, []).append(at)
    ranges: dict[tuple[str, tuple[int, ...]], tuple[int, int]] = {}
    for trace in proto.heap_simulator_traces:
        start: dict[int, tuple[str, tuple[int, ...], int]] = {}
        now = 0
        pending: list[tuple[str, tuple[int, ...], int]] = []
        for event in trace.events:
            buffer = event.buffer_id
            if event.kind == _FREE:
                if buffer in start:
                    pending.append(start[buffer])
                continue
            place = places.get(buffer)
            if place is None:
                continue
            name = place[0] or event.instruction_name
            at = positions.get(name, now)
            if at > now:
                _end(pending, uses, now, at - 1, ranges)
                now = at
            start[buffer] = name, place[1], at
        _end(pending, uses, now, len(module.sequence), ranges)
    return LiveRanges(tuple([i.name for i in module.sequence]), ranges, exact=False)


def _end(
    pending: list[tuple[str, tuple[int, ...], int]],
    uses: dict[str, list[int]],
    now: int,
    last: int,
    ranges: dict[tuple[str, tuple[int, ...]], tuple[int, int]],
) -> None:
    """Give an end between ``now`` and ``last`` to the values freed there, and forget them."""
    for name, index, start in pending:
        places = uses.get(name, ())
        # Positions come in order: the latest that is not after ``last``.
        latest = bisect_right(places, last)
        ranges[name, index] = start, max(now, places[latest - 1]) if latest else now
    pending.clear()
