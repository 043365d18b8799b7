"""An HLO module without its buffer assignment: the table from the shapes, and an upper bound on the peak.

Every array has the bytes of its shape and is held from where it is made to its last use in the schedule,
arguments and outputs for the whole run; views, loops and updates in place share one buffer
(:mod:`xlamem.readers.storage`). The compiler also lets values share buffers in ways that the module does not
show, so this is an upper bound on what is live. It leaves out fragmentation and the small tables of tuples,
and is called "estimated".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from xlamem.analysis import ownership
from xlamem.readers.assigned import space_name
from xlamem.readers.assignment_report import Facts
from xlamem.readers.capacity import fits_in, needs
from xlamem.readers.hlo_copies import layout_copies
from xlamem.readers.hlo_flow import Flow
from xlamem.readers.hlo_module import HloModule, Instruction
from xlamem.readers.storage import Place, Storage, leaves
from xlamem.report import Allocation, Backend, LayoutCopy, MemoryReport, Space, Timeline
from xlamem.shape import Shape

_VIEWS = frozenset(
    {"tuple", "get-tuple-element", "bitcast", "while", "call", "conditional", "optimization-barrier",
     "domain", "copy-done", "async-done", "async-update", "parameter"}
)  # fmt: skip


@dataclass(slots=True)
class _Group:
    """One buffer: who made it, its largest shape, and from where to where it is needed."""

    maker: Instruction
    index: tuple[int, ...]
    shape: Shape
    bytes: int
    start: int
    end: int
    kind: str = "temp"


def report(module: HloModule, facts: Facts) -> MemoryReport:
    """The estimated report of a module."""
    sequence = module.sequence
    groups = _groups(module, sequence)
    flow = Flow(module)
    copied = layout_copies(flow)
    backward = ownership.backward_steps(i.op_name for i in sequence)
    device = space_name(0, facts.backend)
    allocations = [_allocation(g, flow, backward, g.maker.name in copied, facts.backend) for g in groups]
    spaces, timelines = [], []
    for name in sorted(dict.fromkeys(a.space for a in allocations), key=lambda n: n != device):
        found = _timeline(name, allocations, sequence)
        timelines.append(found)
        spaces.append(_space(name, allocations, found, facts.capacity if name == device else None))
        allocations = [_at(a, found.peak_at) if a.space == name else a for a in allocations]
    notes = [*facts.notes, *module.notes]
    notes.append("estimated from the HLO alone: an upper bound, without the compiler's buffer assignment")
    if not module.scheduled:
        notes.append(
            "the module is not scheduled: the order is as printed, and the compiler has not fused it yet"
        )
    main = spaces[0] if spaces else Space(device, used=0, total=0)
    program = facts.program or module.name or None
    lives = {a.name: a for a in allocations}
    return MemoryReport(
        kind="success",
        severity="info",
        source=facts.source,
        message=needs(program, main, "estimated"),
        backend=facts.backend,
        target=facts.target,
        program=program,
        fits=fits_in(main, "estimated"),
        provenance="estimated",
        spaces=tuple(spaces) or (main,),
        allocations=tuple(allocations),
        partial=module.truncated,
        truncated=facts.truncated or module.truncated,
        timelines=tuple(timelines),
        notes=tuple(dict.fromkeys(notes)),
        copies=tuple(_copy(copy, lives.get(copy.name), device) for copy in copied.values()),
    )


def _groups(module: HloModule, sequence: Sequence[Instruction]) -> list[_Group]:
    storage = Storage(module)
    found: dict[Place, _Group] = {}
    last = max(len(sequence) - 1, 0)
    for at, i in enumerate(sequence):
        for index in leaves(i.shape):
            shape = _leaf(i.shape, index)
            size = 0 if shape is None else shape.padded_bytes if index else i.bytes or 0
            if shape is None or not size:
                continue
            place = storage.find((i.name, index))
            group = found.get(place)
            if group is None:
                found[place] = group = _Group(i, index, shape, size, at, at)
            elif (
                group.maker.opcode in _VIEWS and group.maker.opcode != "parameter" and i.opcode not in _VIEWS
            ):
                group.maker, group.index = i, index
            if size > group.bytes:
                group.shape, group.bytes = shape, size
            group.end = max(group.end, at)
            if i.opcode == "parameter" and i.computation == module.entry:
                group.kind = "alias" if i.number in module.aliased_parameters else "argument"
                group.maker, group.index, group.start, group.end = i, index, 0, last
            elif i.opcode == "constant" and group.kind == "temp":
                group.kind, group.start, group.end = "constant", 0, last
        if i.opcode in _VIEWS:
            continue
        for operand in i.operands:
            made = module.instructions.get(operand)
            for index in leaves(None if made is None else made.shape):
                group = found.get(storage.find((operand, index)))
                if group is not None:
                    group.end = max(group.end, at)
    root = module.computations[module.entry].root if module.entry in module.computations else None
    result = module.instructions.get(root or "")
    for index in leaves(None if result is None else result.shape):
        group = found.get(storage.find((root or "", index)))
        if group is not None:
            # An output has its own memory from the start, which temporaries may borrow or not.
            group.start, group.end = 0, last
            group.kind = "output" if group.kind == "temp" else group.kind
    return list(found.values())


def _leaf(shape: Shape | None, index: tuple[int, ...]) -> Shape | None:
    for n in index:
        shape = None if shape is None else shape.elements[n]
    return shape


def _allocation(
    g: _Group, flow: Flow, backward: list[int], is_copy: bool, backend: Backend | None
) -> Allocation:
    named = flow.op_name((g.maker.name, g.index))
    source = g.maker if g.maker.source_file is not None else named
    op_name = None if named is None else named.op_name
    owner = {"output": "outputs", "constant": "constants"}.get(g.kind)
    if g.kind in ("argument", "alias"):
        owner = ownership.argument_role(op_name)
    elif g.kind == "temp":
        owner = ownership.temp_owner(g.maker.name, op_name, (g.start, g.end), backward, is_copy)
    return Allocation(
        space=space_name(0 if g.shape.layout is None else g.shape.layout.memory_space, backend),
        kind=g.kind,
        bytes=g.bytes,
        unpadded_bytes=min(g.bytes, g.shape.unpadded_bytes),
        shape=g.shape,
        name=g.maker.name,
        opcode=g.maker.opcode,
        op_name=op_name,
        source_file=None if source is None else source.source_file,
        source_line=None if source is None else source.source_line,
        owner=owner,
        live=(g.start, g.end),
        provenance="estimated",
    )


def _timeline(space: str, allocations: Sequence[Allocation], sequence: Sequence[Instruction]) -> Timeline:
    """Live bytes by differences: what comes at a position, less what went after the one before."""
    padded = [0] * (len(sequence) + 1)
    data = [0] * (len(sequence) + 1)
    for a in allocations:
        if a.space == space and a.live is not None:
            for changes, size in ((padded, int(a.bytes)), (data, int(a.unpadded_bytes or 0))):
                changes[a.live[0]] += size
                changes[a.live[1] + 1] -= size
    live = tuple(accumulate(padded[:-1]))
    peak_at = live.index(max(live))
    at_peak = sequence[peak_at]
    return Timeline(
        space=space,
        live=live,
        unpadded=tuple(accumulate(data[:-1])),
        instructions=tuple(i.name for i in sequence),
        peak_at=peak_at,
        op_names=tuple(i.op_name for i in sequence),
        source_file=at_peak.source_file,
        source_line=at_peak.source_line,
    )


def _space(name: str, allocations: Sequence[Allocation], found: Timeline, capacity: int | None) -> Space:
    here = [a for a in allocations if a.space == name]

    def of(*kinds: str) -> int:
        return sum(int(a.bytes) for a in here if a.kind in kinds)

    peak = found.live[found.peak_at]
    held = [a for a in here if a.kind == "temp" and _at(a, found.peak_at).at_peak]
    return Space(
        name,
        capacity=capacity,
        used=peak,
        over=None if capacity is None or peak <= capacity else peak - capacity,
        arguments=of("argument", "alias"),
        outputs=of("output", "alias"),
        aliased=of("alias"),
        constants=of("constant"),
        temps=sum(int(a.bytes) for a in held),
        padded=sum(int(a.bytes) for a in held),
        unpadded=sum(int(a.unpadded_bytes or 0) for a in held),
        peak=peak,
        total=peak,
    )


def _at(a: Allocation, position: int) -> Allocation:
    return a if a.live is None else replace(a, at_peak=a.live[0] <= position <= a.live[1])


def _copy(copy: LayoutCopy, a: Allocation | None, device: str) -> LayoutCopy:
    return copy if a is None else replace(copy, live=a.live, at_peak=a.at_peak and a.space == device)
