"""From a buffer assignment, with what else a dump holds, to a :class:`~xlamem.report.MemoryReport`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xlamem.analysis import ownership
from xlamem.analysis.timeline import data_of, is_heap, timeline, with_peak, with_totals
from xlamem.readers.assigned import AssignedAllocation, Assignment, LiveRanges, Value, space_name
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
            allocations = [with_peak(a, found) if a.space == name else a for a in allocations]
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
        sequence = live.sequence if live is not None else ()
        self.steps = [(name, self._step_name(name)) for name in sequence]
        self.backward = ownership.backward_steps(name for _, name in self.steps)
        # A buffer that a loop works on is several values in a row; its time is theirs together.
        self.spans = {} if live is None else dict(live.ranges)
        loops = module is not None and any(i.opcode in CONTROL_FLOW for i in module.sequence)
        if module is not None and live is not None and self.backward and loops:
            storage = Storage(module)
            together = storage.spans(live.ranges)
            self.spans = {
                place: together.get(storage.find(place), span) for place, span in live.ranges.items()
            }
        self.unknown = 0
        self.values = 0
        self.without_range = 0
        self.bytes_without_range = 0

    def _instruction(self, name: str) -> Instruction | None:
        return self.instructions.get(name)

    def _step_name(self, name: str) -> str | None:
        instruction = self._instruction(name)
        return None if instruction is None else instruction.op_name

    def allocations(self) -> list[Allocation]:
        """The report's allocations, in the order of the assignment."""
        return [self._allocation(a) for a in self.assignment.allocations]

    def _allocation(self, a: AssignedAllocation) -> Allocation:
        kind = a.kind
        buffers = tuple([self._buffer(v, kind) for v in a.values])
        main = None if kind == "temp" and len(buffers) != 1 else _main(a, buffers)
        space = space_name(a.color, self.backend)
        label = None if a.parameter is None else f"parameter {a.parameter}"
        if main is None:  # a heap, or scratch
            return Allocation(
                space=space,
                kind=kind,
                bytes=a.bytes,
                label=f"heap of {len(buffers)} values" if buffers else "scratch",
                buffers=buffers,
                provenance="compiled",
                line=a.line,
            )
        return Allocation(
            space=space,
            kind=kind,
            bytes=a.bytes,
            unpadded_bytes=_unpadded(a, main),
            shape=main.shape,
            name=main.name,
            opcode=main.opcode,
            op_name=main.op_name,
            label=label,
            source_file=main.source_file,
            source_line=main.source_line,
            owner=_owner(kind, main),
            live=main.live,
            buffers=buffers,
            provenance="compiled",
            line=a.line,
        )

    def _buffer(self, value: Value, kind: str) -> Buffer:
        name, index, size, offset, shape, _ = value
        place = name, index
        instruction = self.instructions.get(name)
        named = instruction
        if (instruction is None or instruction.op_name is None) and self.flow is not None:
            named = self.flow.op_name(place)
        live = self.ranges.get(place)
        self.values += 1
        self.unknown += instruction is None
        op_name = None if named is None else named.op_name
        source = instruction if instruction is not None and instruction.source_file is not None else named
        owner = None
        if kind == "temp":
            if live is None:
                self.without_range += 1
                self.bytes_without_range += size
            if shape is not None and shape.is_tuple:
                owner = "workspace"  # a table of pointers
            else:
                span = self.spans.get(place)
                owner = ownership.temp_owner(name, op_name, span, self.backward, name in self.layout_copies)
        # Half the time of Buffer(...), which is a function in Python.
        return tuple.__new__(
            Buffer,
            (
                name,
                size,
                offset,
                shape,
                index,
                None if instruction is None else instruction.opcode,
                op_name,
                None if source is None else source.source_file,
                None if source is None else source.source_line,
                owner,
                live,
                None,
            ),
        )

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
        for a in allocations:
            for b in a.buffers:
                copy = self.layout_copies.get(b.name)
                if copy is not None and b.index == ():
                    at_peak = None if b.live is None or peak is None else b.live[0] <= peak <= b.live[1]
                    found[b.name] = replace(copy, live=b.live, at_peak=at_peak and a.space == self.device)
        return tuple(found.get(name, copy) for name, copy in self.layout_copies.items())

    def notes(self, allocations: Sequence[Allocation], timelines: Sequence[Timeline]) -> list[str]:
        """What did not fit together."""
        notes = []
        if self.module is None:
            notes.append(
                "no HLO module beside the buffer assignment: values have no op_name and no source line"
            )
        elif self.unknown:
            notes.append(
                f"{self.unknown} of {self.values} values are not in the HLO module: "
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


def _main(a: AssignedAllocation, buffers: tuple[Buffer, ...]) -> Buffer | None:
    """The value that an allocation is named by: the parameter, else the largest; of equal ones the last.

    Values take turns in an allocation; the last one written to an output's is the output.
    """
    if a.parameter is not None:
        return buffers[0] if buffers else None
    return max(enumerate(buffers), key=lambda item: (item[1].bytes, item[0]))[1] if buffers else None


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
