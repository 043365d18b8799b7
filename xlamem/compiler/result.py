"""The report of a compile: what the readers find in the dump, and what only the compile knows."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from xlamem.compiler import job as jobs
from xlamem.compiler.child import Outcome
from xlamem.errors import CompilerError, NotAReportError
from xlamem.readers.dump import read_dump
from xlamem.report import MemoryReport, Source, Space, Target
from xlamem.units import format_size

__all__ = ["report", "versions"]


def report(job: jobs.Job, outcome: Outcome, source: str) -> MemoryReport:
    """The report of a job that is done, while its dump is still there. ``source`` says what was compiled.

    Raises:
        CompilerError: the dump holds no buffer assignment.
    """
    assert outcome.dump is not None
    assert outcome.lowered is not None
    read = _read(Path(outcome.dump.folder), outcome)
    target = job.target
    capacity, fits = _verdict(job, outcome, read)
    spaces = read.spaces
    if spaces:
        spaces = (_with_capacity(spaces[0], capacity), *spaces[1:])
    notes = [
        *(f"{text}" for text in outcome.lowered.program.notes),
        *outcome.dump.notes,
        *(() if target.platform is None else jobs.backend(target.platform).NOTES),
        _compiled_by(job, outcome),
        *_spread(job, outcome),
        *_counted(outcome),
        *read.notes,
    ]
    return replace(
        read,
        kind="hbm" if fits is False else "success",
        severity="error" if fits is False else "info",
        source=Source(source, "compile"),
        message=_message(outcome, spaces, capacity, fits),
        target=None if target.device is None else Target(target.name),
        program=read.program or outcome.lowered.program.name,
        fits=fits,
        spaces=spaces,
        notes=tuple(dict.fromkeys(notes)),
        flops=_flops(outcome),
        compile_seconds=outcome.seconds,
    )


def _read(folder: Path, outcome: Outcome) -> MemoryReport:
    try:
        read = read_dump(folder)[0]
    except NotAReportError:
        read = None
    if read is None or read.provenance != "compiled":
        said = f": {outcome.over.message}" if outcome.over is not None else ""
        raise CompilerError(f"the compiler left no buffer assignment{said}")
    return read


def _verdict(job: jobs.Job, outcome: Outcome, read: MemoryReport) -> tuple[int | None, bool | None]:
    """What a program may take, in bytes, and whether this one fits: the compiler's word where it gives one."""
    target = job.target
    if target.platform == "tpu":
        assert target.device is not None
        return target.device.allowed, False if outcome.over is not None else read.fits
    capacity = job.memory if target.platform == "cuda" else outcome.dump.capacity if outcome.dump else None
    if outcome.over is not None:
        return capacity, False
    main = read.space
    if capacity is None or main is None or main.total is None:
        return capacity, None
    # XLA compiles for a GPU whatever the size.
    return capacity, _taken(read) <= capacity


def _taken(read: MemoryReport) -> int:
    """Bytes of the device's memory: what is thread-local takes none of it."""
    assert read.space is not None
    here = read.in_space(read.space.name)
    return sum(int(a.bytes) for a in here if a.kind != "thread-local")


def _with_capacity(space: Space, capacity: int | None) -> Space:
    used = space.used
    over = None if capacity is None or used is None or used <= capacity else int(used) - capacity
    return replace(space, capacity=capacity, over=over)


def _message(outcome: Outcome, spaces: tuple[Space, ...], capacity: int | None, fits: bool | None) -> str:
    if outcome.over is not None:
        return outcome.over.message.strip()
    assert outcome.lowered is not None
    name = outcome.lowered.program.name
    needs = f"{name} needs {format_size(spaces[0].total or 0) if spaces else 'no memory'}"
    if capacity is not None:
        needs += f"; {format_size(capacity)} can be used"
    if fits is False and spaces and not spaces[0].over:
        needs += "; the compiler found that it does not fit"
    return needs


def _compiled_by(job: jobs.Job, outcome: Outcome) -> str:
    what = ", ".join(
        f"{name} {number}" for name, number in versions(job.target.platform).items() if name != "jaxlib"
    )
    part = ", memory only: ended when the buffers were assigned" if outcome.early else ""
    return f"compiled in {outcome.seconds:.1f} s ({what}{part})"


def _spread(job: jobs.Job, outcome: Outcome) -> list[str]:
    assert outcome.lowered is not None
    devices = outcome.lowered.program.devices
    target = job.target
    few = f"{devices} of the {target.devices} devices of {target}" if devices < target.devices else ""
    if devices > 1:
        return [f"spread over {few or f'{devices} devices'}; all figures are of one of them"]
    if not few:
        return []
    how = "it is not spread" if job.path is not None else "no input has a sharding"
    how += "" if job.path is not None else "; cut inputs with --mesh and --shard"
    return [f"compiled for {few}: {how}"]


def _flops(outcome: Outcome) -> float | None:
    """The compiler's count; None where it gives none."""
    flops = outcome.compiled.flops if outcome.compiled is not None else None
    return flops if flops is not None and flops > 0 else None


def _counted(outcome: Outcome) -> list[str]:
    compiled, flops = outcome.compiled, _flops(outcome)
    if compiled is None or flops is None:
        return []
    text = f"{flops:.4g} floating-point operations a call"
    if compiled.bytes_accessed and compiled.bytes_accessed > 0:
        text += f", {compiled.bytes_accessed:.4g} bytes read and written"
    return [
        f"{text} (the compiler's count for one device: a loop's body counts once, kernels of libraries not at all)"
    ]


def versions(platform: str | None) -> dict[str, str]:
    """The installed distributions that decide a compile's answer, with their versions."""
    found = {}
    for name in jobs.backend(platform).PACKAGES:  # type: ignore[arg-type]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
