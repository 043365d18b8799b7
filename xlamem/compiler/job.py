"""What the parent asks of the child, and what the child tells: plain data, sent between the two processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

from xlamem.compiler.program import Program
from xlamem.compiler.spec import FunctionSpec
from xlamem.compiler.target import CompileTarget, Platform
from xlamem.errors import XlamemError

__all__ = ["Compiled", "Dumping", "Event", "Failed", "Job", "Lowered", "OutOfMemory", "Stage", "backend"]


@dataclass(frozen=True, slots=True)
class Job:
    """One compile. Exactly one of ``program``, ``function`` and ``path`` says what."""

    target: CompileTarget
    program: Program | None = None
    function: FunctionSpec | None = None
    #: A dump, HLO, StableHLO or artifact on disk, and which program of it.
    path: str | None = None
    module: str | None = None
    #: Stop when the program is lowered.
    lower_only: bool = False
    #: Go on to the end, for what only a whole compile tells.
    full: bool = False
    #: GPU: bytes that a program may take.
    memory: int | None = None
    #: For the compiler, over what a target needs.
    xla_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """The child has begun something that may take time: "tracing", "compiling"."""

    text: str


@dataclass(frozen=True, slots=True)
class Lowered:
    """The program, and what the child read to make it (see :mod:`xlamem.compiler.manifest`)."""

    program: Program
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    environment: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dumping:
    """The compiler starts, and writes into ``folder``. ``capacity`` is in bytes, where the device tells."""

    folder: str
    platform: Platform
    capacity: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The compiler ended with: it does not fit. The dump has the rest."""

    message: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compile went to its end. ``flops`` and ``bytes_accessed`` are the compiler's count for one device."""

    flops: float | None = None
    bytes_accessed: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Something went wrong that has a message of its own."""

    error: XlamemError


Event = Stage | Lowered | Dumping | OutOfMemory | Compiled | Failed


def backend(platform: Platform | None) -> ModuleType:
    """The module that knows how to compile for a platform; :mod:`~xlamem.compiler.cpu` for what is attached."""
    from xlamem.compiler import cpu, gpu, tpu

    if platform == "tpu":
        return tpu
    return gpu if platform == "cuda" else cpu
