"""From a buffer assignment, with what else a dump holds, to a :class:`~xlamem.report.MemoryReport`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xlamem.analysis import ownership
from xlamem.analysis.timeline import is_heap, timeline, with_peak, with_totals
from xlamem.readers.assigned import AssignedAllocation, Assignment, LiveRanges, Value, memory_word, space_name
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
    if fits is None and main.capacity is not None:
        fits = main.over is None
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
        self.flow = None if module is None else Flow(module)
        self.layout_copies = {} if self.flow is None else layout_copies(self.flow)
        sequence = live.sequence if live is not None else ()
        self.steps = [(name, self._step_name(name)) for name in sequence]
        self.backward = ownership.backward_steps(name for _, name in self.steps)
        # A buffer that a loop works on is several values in a row; its time is theirs together.
        self.spans = {} if live is None else dict(live.ranges)
        if module is not None and live is not None and any(i.opcode in CONTROL_FLOW for i in module.sequence):
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
        return None if self.module is None else self.module.instructions.get(name)

    def _step_name(self, name: str) -> str | None:
        instruction = self._instruction(name)
        return None if instruction is None else instruction.op_name

    def allocations(self) -> list[Allocation]:
        """The report's allocations, in the order of the assignment."""
        return [self._allocation(a) for a in self.assignment.allocations]

    def _allocation(self, a: AssignedAllocation) -> Allocation:
        kind = a.kind
        buffers = tuple(self._buffer(v, a, kind) for v in a.values)
        main = _main(a, buffers)
        heap = kind == "temp" and len(a.values) != 1
        shown = Allocation(
            space=space_name(a.color, self.backend),
            kind=kind,
            bytes=a.bytes,
            unpadded_bytes=None if main is None else _unpadded(a, main),
            name=None if main is None else main.name,
            label=None if a.parameter is None else f"parameter {a.parameter}",
            buffers=buffers,
            provenance="compiled",
            line=a.line,
        )
        if heap or main is None:
            return replace(
                shown,
                name=None,
                unpadded_bytes=None,
                label=f"heap of {len(buffers)} values" if buffers else "scratch",
            )
        return replace(
            shown,
            shape=main.shape,
            opcode=main.opcode,
            op_name=main.op_name,
            source_file=main.source_file,
            source_line=main.source_line,
            owner=_owner(kind, main),
            live=main.live,
        )

    def _buffer(self, value: Value, a: AssignedAllocation, kind: str) -> Buffer:
        place = value.name, value.shape_index
        instruction = self._instruction(value.name)
        named = None if self.flow is None else self.flow.op_name(place)
        live = None if self.live is None else self.live.ranges.get(place)
        self.values += 1
        self.unknown += self.module is not None and instruction is None
        if self.live is not None and live is None and kind == "temp":
            self.without_range += 1
            self.bytes_without_range += value.bytes
        op_name = None if named is None else named.op_name
        source = instruction if instruction is not None and instruction.source_file is not None else named
        owner = None
        if kind == "temp" and value.shape is not None and value.shape.is_tuple:
            owner = "workspace"  # a table of pointers
        elif kind == "temp":
            owner = ownership.temp_owner(
                value.name, op_name, self.spans.get(place), self.backward, value.name in self.layout_copies
            )
        return Buffer(
            name=value.name,
            bytes=value.bytes,
            offset=value.offset,
            shape=value.shape,
            index=value.shape_index,
            opcode=None if instruction is None else instruction.opcode,
            op_name=op_name,
            source_file=None if source is None else source.source_file,
            source_line=None if source is None else source.source_line,
            owner=owner,
            live=live,
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
        elif self.without_range:
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
    return min(a.bytes, main.shape.unpadded_bytes)


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
    program = facts.program or "The program"
    needs = f"{program} needs {format_size(main.total or 0)} of {memory_word(main.name)}"
    if main.capacity is not None:
        needs += f"; {format_size(main.capacity)} can be used"
    if fits is False and not main.over:
        needs += "; the compiler found that it does not fit"
    return needs
