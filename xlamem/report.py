"""The one model that every input becomes and every output is made from.

Bytes are integers. A figure read off a text is a :class:`xlamem.units.Size`, an integer that knows how
exact it is. ``None`` means that the input did not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas

    from xlamem.shape import Shape

#: What a report is about. The list is closed; docs/architecture.md says what each means.
Kind = Literal[
    "hbm",
    "onchip",
    "runtime-alloc",
    "program-load",
    "fragmentation",
    "host",
    "kernel-shared-memory",
    "remat-warning",
    "benign",
    "success",
    "not-xla",
    "other",
]
Severity = Literal["error", "warning", "info"]
Backend = Literal["tpu", "gpu", "cpu"]

#: Where a figure comes from: read off the text, computed from shape and layout, from the real
#: compiler's buffer assignment, or by a rule of thumb.
Provenance = Literal["reported", "computed", "compiled", "estimated"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a report was read: a file name ("-" is standard input), the form, 1-based first and last line."""

    name: str
    format: str
    line: int | None = None
    end_line: int | None = None


class Target(NamedTuple):
    """The chip a report is about: its name in :mod:`xlamem.targets`, and whether it was only inferred."""

    name: str
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Space:
    """The totals of one memory space ("hbm", "vmem", "smem", "sflag", "host", "shared" ...), in bytes.

    ``capacity`` is what the compiler or allocator allows, ``used`` what is measured against it, ``over``
    by how much it was exceeded. ``requested``, ``free``, ``largest_free`` and ``reservable`` belong to
    run-time allocators. ``goal`` is what
    rematerialization aimed at. ``total`` is the input's own total, of what it counts; ``program`` is what
    the program needs beside its arguments; ``reserved`` belongs to the system and
    ``program_reserved`` to the program. ``unpadded``, ``padded``, ``padding`` and ``fragmentation``
    describe ``temps``: ``temps = padded + fragmentation`` and ``padding = padded - unpadded``.
    ``constants`` are what TPU reports call "global".
    """

    name: str
    capacity: int | None = None
    used: int | None = None
    over: int | None = None
    requested: int | None = None
    free: int | None = None
    largest_free: int | None = None
    reservable: int | None = None
    goal: int | None = None
    reserved: int | None = None
    program: int | None = None
    program_reserved: int | None = None
    arguments: int | None = None
    outputs: int | None = None
    aliased: int | None = None
    temps: int | None = None
    constants: int | None = None
    overlays: int | None = None
    scoped: int | None = None
    unpadded: int | None = None
    padded: int | None = None
    fragmentation: int | None = None
    peak: int | None = None
    total: int | None = None
    #: Printed percentages: unpadded / padded (or of the whole space, on-chip), fragmentation / temps.
    utilization: float | None = None
    fragmentation_ratio: float | None = None

    @property
    def padding(self) -> int | None:
        """Bytes of the temporaries that are tile padding: ``padded - unpadded``."""
        if self.padded is None or self.unpadded is None:
            return None
        return int(self.padded) - int(self.unpadded)

    @property
    def excess(self) -> int | None:
        """By how much the capacity is exceeded: as printed, or else used less capacity."""
        if self.over is not None or self.used is None or self.capacity is None:
            return self.over
        return max(0, int(self.used) - int(self.capacity))

    def figures(self) -> dict[str, int | float | None]:
        """Every figure by its name, those that are not known too; without :attr:`padding`."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "name"}


class Operand(NamedTuple):
    """An operand of the instruction that made a buffer: its name, and its shape where the text has it."""

    name: str
    shape: Shape | None = None


class Buffer(NamedTuple):
    """A value that lives in an allocation, from a dump. Buffers share offsets: never sum them.

    ``live`` is the first and last position in the program's sequence at which the value is needed. A tuple,
    because a program has tens of thousands of them.
    """

    name: str
    bytes: int
    offset: int
    shape: Shape | None = None
    index: tuple[int, ...] = ()  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    opcode: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    owner: str | None = None
    live: tuple[int, int] | None = None
    at_peak: bool | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """What XLA reserves in one memory space.

    ``bytes`` is the best known figure and ``provenance`` says where it comes from; ``reported_bytes``
    and ``reported_unpadded_bytes`` keep the text's own. ``kind`` is one of temp, argument, output,
    alias, constant, thread-local, scoped, overlays, reserved, other. ``name`` is the instruction,
    ``label`` what the report printed about it (an HLO fragment, or words such as "overlays").
    ``shape_assumed`` is true where the text showed no tile and one was assumed, as reports of 2019 do.
    """

    space: str
    kind: str
    bytes: int
    unpadded_bytes: int | None = None
    reported_bytes: int | None = None
    reported_unpadded_bytes: int | None = None
    shape: Shape | None = None
    shape_assumed: bool = False
    name: str | None = None
    opcode: str | None = None
    operands: tuple[Operand, ...] = ()
    op_name: str | None = None
    label: str | None = None
    tag: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    owner: str | None = None
    live: tuple[int, int] | None = None
    at_peak: bool | None = None
    buffers: Sequence[Buffer] = ()
    provenance: Provenance = "reported"
    #: The 1-based line of the input that this was read from.
    line: int | None = None

    @property
    def padding_bytes(self) -> int | None:
        """``bytes - unpadded_bytes``, or None where the unpadded size is not known."""
        return None if self.unpadded_bytes is None else int(self.bytes) - int(self.unpadded_bytes)

    @property
    def expansion(self) -> float | None:
        """Padded / unpadded: 1.0 means no padding. None where unknown or the unpadded size is 0."""
        return int(self.bytes) / int(self.unpadded_bytes) if self.unpadded_bytes else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """Live bytes of one memory space at each position of the program, padded and unpadded.

    ``peak_at`` indexes both; ``instructions`` names the instruction at each position.
    """

    space: str
    live: tuple[int, ...]
    unpadded: tuple[int, ...]
    instructions: tuple[str, ...]
    peak_at: int
    #: The op_name of the instruction at each position, where it has one.
    op_names: tuple[str | None, ...] = ()
    #: Source file and line of the instruction at the peak.
    source_file: str | None = None
    source_line: int | None = None


@dataclass(frozen=True, slots=True)
class LayoutCopy:
    """A copy or transpose that only changes a layout, and the two instructions that disagree about it.

    ``bytes`` is its result with padding. ``producer`` computed the value as ``from_shape`` has it,
    ``consumer`` wants ``to_shape``; both are named behind everything that only moves values.
    """

    name: str
    opcode: str
    bytes: int
    from_shape: Shape
    to_shape: Shape
    producer: str | None = None
    producer_op_name: str | None = None
    consumer: str | None = None
    consumer_op_name: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    live: tuple[int, int] | None = None
    at_peak: bool | None = None


class Unparsed(NamedTuple):
    """A line inside a report that nobody understood, kept so that nothing is silently lost."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """All that one message, dump, module or compile says about memory.

    ``message`` is the sentence that told it, as printed. ``spaces`` has the space that the report is
    about first. ``allocations`` are in the order of the input; ``partial`` is true when they are only
    the largest ones, so that sums over them are lower bounds. ``times`` counts how often the input
    tells the same (a log and an exception, or many hosts); ``hosts`` names who told it, where lines carry a
    rank, host or process; ``suppressed`` is true when the
    compiler was told to go on after this failure (xla_tpu_no_crash_on_oom); ``truncated`` is true when the
    input broke off inside the report.
    ``notes`` are facts worth a line that are no figures.
    """

    kind: Kind
    severity: Severity
    source: Source
    message: str
    backend: Backend | None = None
    target: Target | None = None
    program: str | None = None
    fits: bool | None = None
    provenance: Provenance = "reported"
    spaces: tuple[Space, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    partial: bool = True
    truncated: bool = False
    timelines: tuple[Timeline, ...] = ()
    times: int = 1
    hosts: tuple[str, ...] = ()
    suppressed: bool = False
    notes: tuple[str, ...] = ()
    unparsed: tuple[Unparsed, ...] = field(default=())
    #: From a dump or a module: what only changes layouts, in program order.
    copies: tuple[LayoutCopy, ...] = ()
    #: Of a compile to the end: floating-point operations a call on one device, as the compiler counts them.
    flops: float | None = None
    #: Of a compile: how long it took. It stays that of the compile in an answer from the cache.
    compile_seconds: float | None = None

    @property
    def space(self) -> Space | None:
        """The memory space that the report is about."""
        return self.spaces[0] if self.spaces else None

    def in_space(self, name: str) -> tuple[Allocation, ...]:
        """The allocations of one memory space, in the order of the input."""
        return tuple(a for a in self.allocations if a.space == name)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame, one row an allocation; sizes are nullable integers (bytes)."""
        from xlamem.show.frame import to_frame

        return to_frame(self)

    def __str__(self) -> str:
        """What ``xlamem explain`` prints, without colour."""
        from xlamem.explanation import explain
        from xlamem.show.terminal import to_text

        return to_text([explain(self)])
