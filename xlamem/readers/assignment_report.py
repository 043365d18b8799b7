"""From a buffer assignment, with what else a dump holds, to a :class:`~xlamem.report.MemoryReport`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from xlamem.analysis import ownership
from xlamem.analysis.heap import HeapValues, data_of, extents
from xlamem.analysis.timeline import is_heap, set_peak, timeline, with_totals
from xlamem.readers.assigned import AssignedAllocation, Assignment, LiveRanges, Place, space_name
from xlamem.readers.capacity import fits_in, needs
from xlamem.readers.hlo_copies import layout_copies
from xlamem.readers.hlo_flow import Flow
from xlamem.readers.hlo_module import CONTROL_FLOW, HloModule, Instruction
from xlamem.readers.storage import Storage
from xlamem.report import (
    Allocation,
    Backend,
    Buffer,
    LayoutCopy,
    MemoryReport,
    Source,
    Space,
    Target,
    Timeline,
)
from xlamem.units import format_size


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the assignment: where it was read, on what chip it is to run, whether it fits."""

    source: Source
    program: str | None = None
    backend: Backend | None = None
    target: Target | None = None
    capacity: int | None = None
    #: What the compiler itself decided; None where it left no sign.
    fits: bool | None = None
    notes: tuple[str, ...] = ()
    truncated: bool = False


def report(
    assignment: Assignment, module: HloModule | None, live: LiveRanges | None, facts: Facts
) -> MemoryReport:
    """The report of one compiled program. ``module`` adds names and sources, ``live`` the timeline."""
    builder = _Builder(assignment, module, live, facts.backend)
    allocations = builder.allocations()
    timelines = []
    spaces = []
    for name in _space_names(allocations, builder.device):
        found = timeline(name, allocations, builder.steps)
        if found is not None:
            timelines.append(builder.located(found))
            for a in allocations:
                if a.space == name:
                    set_peak(a, found)
        capacity = facts.capacity if name == builder.device else None
        spaces.append(with_totals(_totals(name, allocations, capacity), allocations, found))
    main = spaces[0] if spaces else Space(builder.device, used=0, total=0)
    fits = facts.fits
    if fits is None:
        fits = fits_in(main, "compiled")
    notes = [*facts.notes, *assignment.notes]
    for part in (module, live):
        notes += part.notes if part is not None else ()
    thread_local = sum(int(a.bytes) for a in allocations if a.kind == "thread-local" and a.space == main.name)
    if thread_local:
        notes.append(
            f"{format_size(thread_local)} of the total are thread-local: the compiler's own total counts "
            "them, but they take no device memory of their own"
        )
    notes += builder.notes(allocations, timelines)
    peaks = {t.space: t.peak_at for t in timelines}
    return MemoryReport(
        kind="hbm" if fits is False else "success",
        severity="error" if fits is False else "info",
        source=facts.source,
        message=_message(facts, main, fits),
        backend=facts.backend,
        target=facts.target,
        program=facts.program,
        fits=fits,
        provenance="compiled",
        spaces=tuple(spaces) or (main,),
        allocations=tuple(allocations),
        partial=assignment.truncated,
        truncated=facts.truncated or assignment.truncated,
        timelines=tuple(timelines),
        notes=tuple(dict.fromkeys(notes)),
        copies=builder.copies(allocations, peaks.get(main.name)),
    )


class _Builder:
    """Joins the values of an assignment with the instructions that made them and the time they are needed."""

    def __init__(
        self,
        assignment: Assignment,
        module: HloModule | None,
        live: LiveRanges | None,
        backend: Backend | None,
    ) -> None:
        self.assignment = assignment
        self.device = space_name(0, backend)
        self.backend = backend
        self.module = module
        self.live = live
        self.ranges = {} if live is None else live.ranges
        self.instructions = {} if module is None else module.instructions
        self.flow = None if module is None else Flow(module)
        self.layout_copies = {} if self.flow is None else layout_copies(self.flow)
        names = () if live is None else live.sequence
        known = self.instructions.get
        op_names = [None if i is None else i.op_name for i in map(known, names)]
        self.steps = list(zip(names, op_names, strict=True))
        self.backward = ownership.backward_steps(op_names)
        self.columns = columns = assignment.as_columns()
        self.extents = extents(columns.offsets, columns.sizes, columns.shapes)
        self.spans = list(map(self.ranges.get, columns.places))
        self.without_range = 0
        self.bytes_without_range = 0

    @cached_property
    def storage(self) -> tuple[Storage, dict[Place, tuple[int, int]]] | None:
        """A buffer that a loop works on is several values in a row; its time is theirs together. None: no loops."""
        module = self.module
        if module is None or not self.backward or not any(i.opcode in CONTROL_FLOW for i in module.sequence):
            return None
        storage = Storage(module)
        return storage, storage.spans(self.ranges)

    def _instruction(self, name: str) -> Instruction | None:
        return self.instructions.get(name)

    def allocations(self) -> list[Allocation]:
        """The report's allocations, in the order of the assignment."""
        found = []
        start = 0
        for a in self.assignment.allocations:
            end = start + len(a.values)
            found.append(self._allocation(a, start, end))
            start = end
        return found

    def _allocation(self, a: AssignedAllocation, start: int, end: int) -> Allocation:
        kind = a.kind
        buffers = HeapValues(self.extents, self.spans, start, end, partial(self._buffer, kind))
        if kind == "temp":
            without = [size for (_, size, _), span in buffers.timed() if span is None]
            self.without_range += len(without)
            self.bytes_without_range += sum(without)
        main = None if kind == "temp" and end - start != 1 else self._main(a, start, end)
        space = space_name(a.color, self.backend)
        label = None if a.parameter is None else f"parameter {a.parameter}"
        if main is None:  # a heap, or scratch
            return Allocation(
                space=space,
                kind=kind,
                bytes=a.bytes,
                label=f"heap of {end - start} values" if end > start else "scratch",
                buffers=buffers,
                provenance="compiled",
                line=a.line,
            )
        found = self._buffer(kind, main, None)
        return Allocation(
            space=space,
            kind=kind,
            bytes=a.bytes,
            unpadded_bytes=_unpadded(a, found),
            shape=found.shape,
            name=found.name,
            opcode=found.opcode,
            op_name=found.op_name,
            label=label,
            source_file=found.source_file,
            source_line=found.source_line,
            owner=_owner(kind, found),
            live=found.live,
            buffers=buffers,
            provenance="compiled",
            line=a.line,
        )

    def _main(self, a: AssignedAllocation, start: int, end: int) -> int | None:
        """Which value an allocation is named by: the parameter, else the largest; of equal ones the last.

        Values take turns in an allocation; the last one written to an output's is the output.
        """
        if end - start < 2 or a.parameter is not None:
            return start if end > start else None
        return max(zip(self.columns.sizes[start:end], range(start, end), strict=True))[1]

    def _buffer(self, kind: str, number: int, at_peak: bool | None) -> Buffer:
        columns = self.columns
        place = columns.places[number]
        name, index = place
        shape = columns.shapes[number]
        instruction = self.instructions.get(name)
        named = instruction
        if (instruction is None or instruction.op_name is None) and self.flow is not None:
            named = self.flow.op_name(place)
        op_name = None if named is None else named.op_name
        source = instruction if instruction is not None and instruction.source_file is not None else named
        owner = None
        if kind == "temp":
            # A tuple's own buffer is a table of pointers.
            pointers = shape is not None and shape.is_tuple
            owner = "workspace" if pointers else self._temp_owner(place, op_name)
        # Half the time of Buffer(...), which is a function in Python.
        return tuple.__new__(
            Buffer,
            (
                name,
                columns.sizes[number],
                columns.offsets[number],
                shape,
                index,
                None if instruction is None else instruction.opcode,
                op_name,
                None if source is None else source.source_file,
                None if source is None else source.source_line,
                owner,
                self.spans[number],
                at_peak,
            ),
        )

    def _temp_owner(self, place: Place, op_name: str | None) -> str:
        name = place[0]
        span = self.ranges.get(place)
        owner = ownership.temp_owner(name, op_name, span, self.backward, name in self.layout_copies)
        if owner != "workspace" or span is None or not ownership.is_forward(op_name):
            return owner
        # The time of the buffer is longer than that of the value, perhaps.
        if self.storage is not None:
            storage, together = self.storage
            span = together.get(storage.find(place), span)
        return ownership.temp_owner(name, op_name, span, self.backward, False)

    def located(self, found: Timeline) -> Timeline:
        """``found`` with the source line of the instruction at its peak."""
        name = found.instructions[found.peak_at]
        instruction = self._instruction(name)
        if instruction is not None and instruction.source_file is None and self.flow is not None:
            instruction = self.flow.op_name((name, ()))
        if instruction is None:
            return found
        return replace(found, source_file=instruction.source_file, source_line=instruction.source_line)

    def copies(self, allocations: Sequence[Allocation], peak: int | None) -> tuple[LayoutCopy, ...]:
        """The layout copies, with the time that their results are needed."""
        found = {}
        copies = self.layout_copies
        homes = (a for a in allocations for _ in range(len(a.buffers)))
        for a, (name, index) in zip(homes, self.columns.places, strict=True) if copies else ():
            if name in copies and index == ():
                live = self.ranges.get((name, ()))
                at_peak = None if live is None or peak is None else live[0] <= peak <= live[1]
                at_peak = at_peak and a.space == self.device
                found[name] = replace(copies[name], live=live, at_peak=at_peak)
        return tuple(found.get(name, copy) for name, copy in copies.items())

    def notes(self, allocations: Sequence[Allocation], timelines: Sequence[Timeline]) -> list[str]:
        """What did not fit together."""
        notes = []
        if self.module is None:
            notes.append(
                "no HLO module beside the buffer assignment: values have no op_name and no source line"
            )
        else:
            places = self.columns.places
            unknown = [name for name, _ in places if name not in self.instructions]
            if unknown:
                notes.append(
                    f"{len(unknown)} of {len(places)} values are not in the HLO module: "
                    "the files are of two compiles"
                )
        heaps = {a.space for a in allocations if is_heap(a) and a.bytes} - {t.space for t in timelines}
        if heaps:
            notes.append(
                f"no live ranges for the heap in {', '.join(sorted(heaps))}: there is no timeline of it, "
                "and how much of it is padding is not known"
            )
        elif self.without_range and self.live is not None:
            notes.append(
                f"{self.without_range} temporary values ({format_size(self.bytes_without_range)}) have no "
                "live range: the timeline leaves them out"
            )
        return notes


def _unpadded(a: AssignedAllocation, main: Buffer) -> int | None:
    """The data in an allocation. A tuple's is a table of pointers: no padding worth a word."""
    if main.shape is None:
        return None
    if main.shape.is_tuple:
        return a.bytes
    return min(a.bytes, data_of(main.shape))


def _owner(kind: str, main: Buffer) -> str:
    if kind in ("argument", "alias"):
        return ownership.argument_role(main.op_name)
    if kind == "temp":
        return main.owner or "workspace"
    return {"output": "outputs", "constant": "constants"}.get(kind, "workspace")


def _space_names(allocations: Sequence[Allocation], device: str) -> list[str]:
    """The memory spaces that have something in them, the device's own memory first."""
    found = dict.fromkeys(a.space for a in allocations if a.bytes)
    return sorted(found, key=lambda name: name != device)


def _totals(name: str, allocations: Sequence[Allocation], capacity: int | None) -> Space:
    here = [a for a in allocations if a.space == name]

    def of(*kinds: str) -> int:
        return sum(int(a.bytes) for a in here if a.kind in kinds)

    total = sum(int(a.bytes) for a in here)
    return Space(
        name,
        capacity=capacity,
        used=total,
        over=None if capacity is None or total <= capacity else total - capacity,
        arguments=of("argument", "alias"),
        outputs=of("output", "alias"),
        aliased=of("alias"),
        temps=of("temp"),
        constants=of("constant"),
        total=total,
    )


def _message(facts: Facts, main: Space, fits: bool | None) -> str:
    text = needs(facts.program, main, "compiled")
    return f"{text}; the compiler found that it does not fit" if fits is False and not main.over else text
