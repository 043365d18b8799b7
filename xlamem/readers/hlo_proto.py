"""``*.hlo.pb``: an HloProto with or without its buffer assignment, or a bare HloModuleProto.

Only the fields of :mod:`xlamem.readers.hlo_schema` are decoded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain, compress
from typing import Any

from xlamem.lazy import Lazy
from xlamem.readers import hlo_columns, hlo_schema
from xlamem.readers.assigned import AssignedAllocation, Assignment, Columns, LiveRanges, Place
from xlamem.readers.hlo_module import CALLERS, Computation, HloModule, Instruction
from xlamem.readers.hlo_proto_shapes import sized_at
from xlamem.shape import Shape

_DAMAGED = "the .pb cannot be decoded: it is cut off, damaged or still being written"
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
            return ProtoContents(notes=(_DAMAGED,))
        proto = hlo_schema.message("HloProto")(hlo_module=bare)
    try:
        return _contents(proto)
    except DecodeError:
        return ProtoContents(notes=(_DAMAGED,))


def read_assignment(data: bytes) -> Assignment | None:
    """The allocations of a bare BufferAssignmentProto (``serialized_buffer_assignment_proto``); or None."""
    from google.protobuf.message import DecodeError

    proto = _try(DecodeError, "BufferAssignment", data)
    if proto is None or not proto.buffer_allocations:
        return None
    try:
        return _assignment(proto, _places(proto, None))
    except DecodeError:
        return None


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
        module = HloModule(proto.hlo_module.name)
        reader = _ModuleReader(proto.hlo_module, module)
    if not proto.HasField("buffer_assignment"):
        return ProtoContents(module)
    places = _places(proto.buffer_assignment, reader)
    assignment = _assignment(proto.buffer_assignment, places)
    live = None if module is None else _traces(proto.buffer_assignment, module, places)
    return ProtoContents(module, assignment, live)


#: An instruction's name, serialized shape and shape.
Made = tuple[str, bytes, Shape | None]


class _ModuleReader:
    """An HloModuleProto as a module. The insides of fusions are taken apart when somebody asks for them."""

    def __init__(self, proto: Any, module: HloModule) -> None:
        """Fill ``module``."""
        # Not the module itself: its computations have this reader, and a circle is not freed at once.
        self.fused = module.fused
        self.outside: dict[str, Instruction] = {}
        module.instructions = self.outside
        self.frames = _Frames(proto.stack_frame_index)
        self.order = {s.key: s.value for s in proto.schedule.sequences}
        module.scheduled = bool(self.order)
        module.aliased_parameters = frozenset(e.parameter_number for e in proto.input_output_alias.entries)
        self.protos = protos = {c.id: c for c in proto.computations}
        self.names = names = {n: c.name for n, c in protos.items()}
        entry = next((n for n, name in names.items() if name == proto.entry_computation_name), None)
        if entry is None and proto.entry_computation_id in names:
            entry = proto.entry_computation_id
        module.entry = None if entry is None else names[entry]
        #: The instructions read, by id, which is unique in a module.
        self.made: dict[int, Made] = {}
        self.rows: dict[int, list[Instruction]] = {}
        #: The insides of fusions, until somebody asks for them.
        self.unread = dict.fromkeys(protos)
        fused: set[int] = set()
        # Two thirds of a module are insides of fusions, which are not looked into: what runs is walked instead.
        level = [*protos] if entry is None else [entry]
        while level:
            level = [n for n in self.read(level, fused) if n in self.unread and n not in fused]
        for n, name in names.items():
            module.computations[name] = _ProtoComputation(name, n, self)
        module.fused.update([names[n] for n in self.unread])

    def find(self, wanted: Iterable[int]) -> None:
        """Read what has the instructions with these ids, which have buffers: it is then no inside of a fusion."""
        missing = [n for n in wanted if n not in self.made]
        if not missing or not self.unread:
            return
        # What a reduction inside a fusion applies has buffers too. An id's upper half is its computation's.
        inside = dict.fromkeys([n >> 32 for n in missing if n >> 32 in self.unread])
        for part in (inside, self.unread):
            if part is inside or any(n not in self.made and n >> 32 not in inside for n in missing):
                self.fused.difference_update([self.names[n] for n in part])
                self.read([*part], set())

    def instructions(self, n: int) -> list[Instruction]:
        """The instructions of a computation, in program order."""
        if n not in self.rows:
            from google.protobuf.message import DecodeError

            try:
                self.read([n], set(), outside=False)
            except DecodeError:  # an inside of a fusion: what is outside was read already
                self.rows[n] = []
            self.unread[n] = None  # still an inside
        return self.rows[n]

    @cached_property
    def roots(self) -> dict[int, tuple[str, str]]:
        """Name and opcode of each computation's root. It comes last, since operands come first; damage aside."""
        filled = {n: c for n, c in self.protos.items() if c.instructions}
        found: dict[int, tuple[str, str]] = {}
        last = _heads([c.instructions[-1] for c in filled.values()])
        for (n, c), (name, opcode, own) in zip(filled.items(), last, strict=True):
            root = c.root_id
            if own != root and own != n << 32 | root:
                fitting = (h for h in _heads(c.instructions) if h[2] in (root, n << 32 | root))
                name, opcode, own = next(fitting, _UNREADABLE)
            if own >= 0:
                found[n] = name, opcode
        return found

    def read(self, numbers: Sequence[int], fused: set[int], outside: bool = True) -> list[int]:
        """Read these computations, ``outside`` of fusions or not.

        What their steps call is returned, what their fusions call is added to ``fused``.
        """
        parts = [self.protos[n].instructions[:] for n in numbers]
        rows = list(chain.from_iterable(parts))
        columns = hlo_columns.instructions(rows)
        names: dict[int, str] = dict(zip(columns.ids, columns.names, strict=True))
        if len(names) < len(rows) and len(numbers) > 1:
            # Ids that are unique in their computation only.
            return [called for n in numbers for called in self.read([n], fused, outside)]
        for n in numbers:
            self.unread.pop(n, None)
        steps: list[int] = []
        called: list[tuple[str, ...]] = [()] * len(rows)
        for at, ids in hlo_columns.calls(rows, columns.opcodes):
            opcode = columns.opcodes[at]
            (fused.update if opcode == "fusion" else steps.extend)(ids)
            if opcode in CALLERS:
                named = tuple([self.names[n] for n in ids if n in self.names])
                called[at] = (
                    named[::-1] if opcode == "while" else named
                )  # body first, in text condition first
        sizes = list(map(sized_at, columns.shapes))
        shapes = [shape for shape, _ in sizes]
        known, place = self.frames.known, self.frames.place
        places = [known[where] if where in known else place(where) for where in columns.metadata]
        homes = [self.names[n] for n, part in zip(numbers, parts, strict=True) for _ in part]
        new = tuple.__new__
        # Half the time of Instruction(...), which is a function in Python.
        made = [
            new(Instruction, (name, opcode, shape, size, home, uses, calls, number, op_name, file, line))
            for name, opcode, (shape, size), home, uses, calls, number, (op_name, file, line) in zip(
                columns.names,
                columns.opcodes,
                sizes,
                homes,
                self._operands(columns, names, homes),
                called,
                hlo_columns.numbers(rows, columns.opcodes),
                places,
                strict=True,
            )
        ]
        self.made.update(
            zip(columns.ids, zip(columns.names, columns.shapes, shapes, strict=True), strict=True)
        )
        if outside:
            self.outside.update(zip(columns.names, made, strict=True))
        start = 0
        for n, part in zip(numbers, parts, strict=True):
            end = start + len(part)
            self.rows[n] = self._in_order(n, columns.ids[start:end], made[start:end])
            start = end
        return steps

    def _operands(
        self, columns: hlo_columns.Instructions, names: dict[int, str], homes: list[str]
    ) -> list[tuple[str, ...]]:
        column = columns.operands
        known: dict[int, Any] = {**names, -1: ""}
        found: list[Any] = list(map(known.get, column))
        if None in found:
            # Ids were once local to the computation; today its id is their upper half.
            numbers = {name: n for n, name in self.names.items()}
            at = -1
            for k, o in enumerate(column):
                at += o == -1
                if found[k] is None:
                    found[k] = names.get(numbers[homes[at]] << 32 | o, "")
        marks = [k for k, o in enumerate(column) if o == -1]
        return [
            tuple(found[start + 1 : end]) for start, end in zip(marks, [*marks, len(column)][1:], strict=True)
        ]

    def _in_order(self, n: int, ids: list[int], rows: list[Instruction]) -> list[Instruction]:
        sequence = self.order.get(n)
        if sequence is None:
            return rows
        order = sequence.instruction_ids[:]
        if order == ids or len(order) != len(ids):
            return rows
        by_id = dict(zip(ids, rows, strict=True))
        try:
            return [by_id[i] for i in order]
        except KeyError:
            return rows


class _ProtoComputation(Computation):
    """A computation that is read when somebody looks into it."""

    __slots__ = ("number", "reader")

    def __init__(self, name: str, number: int, reader: _ModuleReader) -> None:
        self.name = name
        self.number = number
        self.reader = reader

    @property
    def instructions(self) -> list[Instruction]:
        return self.reader.instructions(self.number)

    def _rooted(self) -> tuple[str, str] | None:
        return self.reader.roots.get(self.number)

    @property
    def opcodes(self) -> set[str]:
        return {opcode for _, opcode, own in _heads(self.reader.protos[self.number].instructions) if own >= 0}


_UNREADABLE = "", "", -1


def _heads(rows: Sequence[bytes]) -> list[tuple[str, str, int]]:
    """Name, opcode and id of instructions. Damage inside a fusion, which nobody else looks into, hides that one."""
    from google.protobuf.message import DecodeError

    try:
        return hlo_columns.heads(rows)
    except DecodeError:
        return [_UNREADABLE] if len(rows) == 1 else [head for row in rows for head in _heads([row])]


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
_Placed = tuple[Place, Shape | None]


def _places(proto: Any, reader: _ModuleReader | None) -> dict[int, _Placed]:
    """The logical buffers of a buffer assignment, by their ids."""
    ids, defined = hlo_columns.table("LogicalBuffers", proto.logical_buffers[:])
    indices, instructions = hlo_columns.table("Locations", defined)
    made: dict[int, Made] = {}
    if reader is not None:
        reader.find(instructions)
        made = reader.made
    found: dict[int, _Placed] = {}
    for at, (buffer, packed, maker) in enumerate(zip(ids, indices, map(made.get, instructions), strict=True)):
        if maker is None:
            # Older ones name their instruction.
            name = hlo_columns.table("LocationNames", [defined[at]])[0][0]
            found[buffer] = (name, _index(packed)), None
        elif packed:
            index = _index(packed)
            found[buffer] = (maker[0], index), sized_at(maker[1], index)[0]
        else:
            found[buffer] = (maker[0], ()), maker[2]
    return found


def _assignment(proto: Any, places: dict[int, _Placed]) -> Assignment:
    allocations = []
    assigned = [a.assigned[:] for a in proto.buffer_allocations]
    counts = [len(part) for part in assigned]
    buffers, offsets, sizes = hlo_columns.table("AssignedValues", list(chain.from_iterable(assigned)))
    placed = list(map(places.get, buffers))
    missing = placed.count(None)
    if missing:
        known = [p is not None for p in placed]
        flags = iter(known)
        counts = [sum(next(flags) for _ in range(count)) for count in counts]
        offsets, sizes = list(compress(offsets, known)), list(compress(sizes, known))
    found = [p for p in placed if p is not None]
    columns = Columns([p[0] for p in found], sizes, offsets, [p[1] for p in found])
    start = 0
    for a, count in zip(proto.buffer_allocations, counts, strict=True):
        end = start + count
        parameter = a.is_entry_computation_parameter
        allocations.append(
            AssignedAllocation(
                a.index,
                a.size,
                a.color,
                a.parameter_number if parameter else None,
                tuple(a.parameter_shape_index) if parameter else (),
                a.is_constant,
                a.is_thread_local,
                a.maybe_live_out,
                Lazy(count, partial(columns.values, start, end)),
            )
        )
        start = end
    notes = (f"{missing} values of the buffer assignment are not defined in it",) if missing else ()
    return Assignment(tuple(allocations), notes, columns=columns)


@lru_cache(maxsize=4096)
def _index(packed: bytes) -> tuple[int, ...]:
    """The numbers of a packed field."""
    numbers, at = [], 0
    while 0 <= at < len(packed):
        number, at = _varint(packed, at)
        numbers.append(number)
    return tuple(numbers)


def _traces(proto: Any, module: HloModule, places: dict[int, _Placed]) -> LiveRanges:
    """Live ranges from the heap simulator's own record of what it allocated and freed, in program order.

    A value starts where its instruction stands. Frees are recorded after the allocations of the same
    position, without saying at which one: a value ends at its last use before the next allocation, or, where
    no use is seen (loops hide them), at the latest allocation before the free. The peak does not change.
    """
    sequence = tuple([i.name for i in module.sequence])
    positions = {name: at for at, name in enumerate(sequence)}
    uses = module.uses
    ranges: dict[Place, tuple[int, int]] = {}
    known, where = places.get, positions.get
    for trace in proto.heap_simulator_traces:
        start: dict[int, tuple[Place, int]] = {}
        now = 0
        pending: list[tuple[Place, int]] = []
        events = trace.events[:]
        for number, (kind, buffer) in enumerate(zip(*hlo_columns.table("Events", events), strict=True)):
            if kind == _FREE:
                if buffer in start:
                    pending.append(start[buffer])
                continue
            placed = known(buffer)
            if placed is None:
                continue
            place = placed[0]
            if not place[0]:
                place = hlo_columns.table("EventNames", [events[number]])[0][0], place[1]
            at = where(place[0], now)
            if at > now:
                if pending:
                    _end(pending, uses, now, at - 1, ranges)
                now = at
            start[buffer] = place, at
        _end(pending, uses, now, len(sequence), ranges)
    return LiveRanges(sequence, ranges, exact=False)


def _end(
    pending: list[tuple[Place, int]],
    uses: dict[str, list[int]],
    now: int,
    last: int,
    ranges: dict[Place, tuple[int, int]],
) -> None:
    """Give an end between ``now`` and ``last`` to the values freed there, and forget them."""
    for place, start in pending:
        places = uses.get(place[0], ())
        # Positions come in order: the latest that is not after ``last``.
        latest = bisect_right(places, last)
        end = places[latest - 1] if latest else now
        ranges[place] = start, end if end > now else now
    pending.clear()
