"""Compiling for any TPU or GPU, with none of them here: :func:`compile`.

The only room that knows jax. A compile runs in a process of its own; its dump is read by :mod:`xlamem.readers`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xlamem.compiler import gpu, manifest, result
from xlamem.compiler import job as jobs
from xlamem.compiler.cache import Cache, key_of
from xlamem.compiler.child import Progress, started
from xlamem.compiler.program import Program
from xlamem.compiler.spec import FunctionSpec
from xlamem.compiler.target import ATTACHED, CompileTarget, Platform, parse
from xlamem.errors import CompilerError, ProgramError
from xlamem.report import MemoryReport

__all__ = ["Program", "Settings", "answer", "compile", "compile_program", "lower"]

#: Half an hour: the largest programs seen took minutes.
DEFAULT_TIMEOUT = 1800.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compile, whatever it is. Plain data but for ``progress``, which is called often, from this process."""

    #: Go on to the end of the compile, for FLOPs and for failures after buffer assignment.
    full: bool = False
    #: GPU: the share of the device's memory that a program may take; None is JAX's own 0.75.
    memory_fraction: float | None = None
    #: For the compiler, such as {"xla_tpu_rematerialization_algo": "PEAK_PRIORITY"}.
    xla_options: Mapping[str, str] = field(default_factory=dict)
    #: Seconds; None waits for ever.
    timeout: float | None = DEFAULT_TIMEOUT
    #: Where answers are kept; None keeps and asks for none.
    cache: Cache | None = None
    #: A folder to copy the compiler's dump into. Needs a compile: the cache is not asked.
    dump: str | None = None
    progress: Progress | None = None

    def question(self, target: CompileTarget) -> tuple[object, ...]:
        """What of this decides the answer, with the versions that do."""
        return (
            str(target),
            self.full,
            self.memory_fraction,
            sorted(self.xla_options.items()),
            sorted(result.versions(target.platform).items()),
        )


def compile(
    function: Callable[..., Any] | Program | str | os.PathLike[str],
    /,
    *args: Any,
    target: str,
    kwargs: Mapping[str, Any] | None = None,
    donate: Sequence[int | str] = (),
    static: Sequence[int | str] = (),
    mesh: Mapping[str, int] | None = None,
    shard: Sequence[str] = (),
    as_target: bool = True,
    full: bool = False,
    memory_fraction: float | None = None,
    xla_options: Mapping[str, str] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    cache: bool = True,
    dump: str | os.PathLike[str] | None = None,
) -> MemoryReport:
    """The compiler's own answer: what ``function(*args)`` takes on ``target``, and whether it fits.

    No TPU or GPU is needed, and the function does not run. A program that does not fit gives a report too.

    Args:
        function: a function, jitted (it keeps its options) or not; or the path of a dump, an HLO or StableHLO
            file or a jax.export artifact; or a :class:`Program` from :func:`lower`.
        args: arrays or ``jax.ShapeDtypeStruct``s, in pytrees; shardings over several devices are kept. What is no
            array is built into the program.
        target: "v5e", "v5p:2x2x2", "h100:8", "cpu", "attached" (the devices that are here).
        kwargs: keyword arguments.
        donate: arguments of a function that is not jitted, by position or name, whose memory it may use.
        static: likewise, arguments that are compiled in.
        mesh: {"data": 4}: over as many devices ``args`` are spread, with axes of these names.
        shard: "args[1]=data", "batch['image']=data,None": the axes along which an input is cut; others are whole
            on every device.
        as_target: let ``jax.default_backend()`` answer for the target while ``function`` is traced.
        full: compile to the end; by default the compiler is stopped when memory is known. Gives FLOPs too.
        memory_fraction: GPU: the share of the memory that can be used, 0.75 as JAX does it.
        xla_options: options for the compiler, by name.
        timeout: seconds until it is given up; None for never.
        cache: ask for, and keep, the answer on disk.
        dump: a folder to copy the compiler's dump into.

    Raises:
        UnknownTargetError: no such target.
        CompileError: there is no answer: see :mod:`xlamem.errors` for the reasons. What ``function`` itself
            raises while it is traced is not caught.
    """
    found = parse(target)
    settings = Settings(
        full, memory_fraction, dict(xla_options or {}), timeout, Cache() if cache else None, _path(dump)
    )
    if isinstance(function, str | os.PathLike):
        return answer(jobs.Job(found, path=os.fspath(function)), settings)
    if isinstance(function, Program):
        return compile_program(function, target, settings)
    platform = found.platform or _attached_platform()
    if found.platform is None and platform == "tpu":
        # This process holds them now, and a TPU is held by one process only: compile for their kind instead.
        import jax

        target = jax.devices()[0].device_kind
    program = lower(
        function,
        *args,
        platform=platform,
        kwargs=kwargs,
        donate=donate,
        static=static,
        mesh=mesh,
        shard=shard,
        as_target=as_target,
    )
    return compile_program(program, target, settings, getattr(function, "__name__", program.name))


def lower(
    function: Callable[..., Any],
    /,
    *args: Any,
    platform: Platform,
    kwargs: Mapping[str, Any] | None = None,
    donate: Sequence[int | str] = (),
    static: Sequence[int | str] = (),
    mesh: Mapping[str, int] | None = None,
    shard: Sequence[str] = (),
    as_target: bool = True,
) -> Program:
    """The program that ``function(*args)`` is, for a platform: "tpu", "cuda" or "cpu". Traced in this process.

    Arguments are those of :func:`compile`. One program serves all targets of its platform, and can be sent to
    other processes and machines.
    """
    from xlamem.compiler import jax_private, lowering

    jax_private.check_version()
    return lowering.lower(
        function,
        args,
        kwargs or {},
        platform,
        donate=donate,
        static=static,
        mesh=mesh,
        shard=shard,
        as_target=as_target,
    )


def compile_program(
    program: Program, target: str, settings: Settings | None = None, name: str | None = None
) -> MemoryReport:
    """The report of a program that is lowered already. ``name`` says in the report what it was."""
    return answer(jobs.Job(parse(target), program=program), settings or Settings(), name or program.name)


def lower_in_child(spec: FunctionSpec, target: str, settings: Settings | None = None) -> Program:
    """The program in a function that was named on the command line, traced in a process of its own."""
    settings = settings or Settings()
    with started(jobs.Job(parse(target), function=spec, lower_only=True)) as child:
        outcome = child.wait(timeout=settings.timeout, progress=settings.progress)
        assert outcome.lowered is not None
        return outcome.lowered.program


def answer(job: jobs.Job, settings: Settings, name: str | None = None) -> MemoryReport:
    """The report of ``job``: from the cache if it is there, else by a child.

    Raises:
        CompileError: there is none.
    """
    job = _completed(job, settings)
    jobs.backend(job.target.platform).require()
    if settings.dump is not None:
        _make_dump_folder(settings.dump)
    name = name or job.path or (job.function.function if job.function is not None else "program")
    # What is attached can change from one call to the next.
    cache = settings.cache if job.target.name != ATTACHED and settings.dump is None else None
    question = settings.question(job.target)
    asked = _asked(job, question)
    if cache is not None:
        key = key_of(job.program.digest, question) if job.program is not None else manifest.find(cache, asked)
        if key is not None and (known := _known(cache, key, name)) is not None:
            return known
    with started(job) as child:
        hit: list[MemoryReport] = []

        def look_up(lowered: jobs.Lowered) -> bool:
            known = (
                _known(cache, key_of(lowered.program.digest, question), name) if cache is not None else None
            )
            hit.extend([known] if known is not None else [])
            return bool(hit)

        outcome = child.wait(timeout=settings.timeout, progress=settings.progress, on_lowered=look_up)
        assert outcome.lowered is not None
        if not hit:
            child.check_disk()
        report = hit[0] if hit else result.report(job, outcome, name)
        if settings.dump is not None and outcome.dump is not None:
            _copy(outcome.dump.folder, settings.dump)
    if cache is not None:
        key = key_of(outcome.lowered.program.digest, question)
        if not hit:
            cache.put(key, report)
        if job.program is None:
            given = jobs.backend(job.target.platform).environment(job.target)
            manifest.keep(cache, asked, key, outcome.lowered.files, outcome.lowered.environment, given)
    return report


def _completed(job: jobs.Job, settings: Settings) -> jobs.Job:
    fraction = settings.memory_fraction
    if fraction is not None and not 0 < fraction <= 1:
        raise ProgramError(f"a share of the memory lies between 0 and 1, not at {fraction:g}")
    memory = gpu.usable(job.target, fraction) if job.target.platform == "cuda" else None
    return replace(job, full=settings.full, memory=memory, xla_options=dict(settings.xla_options))


def _asked(job: jobs.Job, question: tuple[object, ...]) -> str:
    return key_of("question", job.function, job.path, job.module, os.getcwd(), question)


def _known(cache: Cache, key: str, name: str) -> MemoryReport | None:
    report = cache.get(key)
    if not isinstance(report, MemoryReport):
        return None
    return replace(
        report, source=replace(report.source, name=name), notes=(*report.notes, "answered from the cache")
    )


def _copy(folder: str, to: str) -> None:
    """Copy the compiler's dump.

    Raises:
        CompilerError: it cannot be written there.
    """
    import shutil

    try:
        shutil.copytree(folder, to, dirs_exist_ok=True)
    except OSError as error:  # shutil.Error is one, with a list of all that went wrong
        raise _not_written(to, error) from None


def _make_dump_folder(to: str) -> None:
    """Before the compile: it may take minutes, and its answer would be lost.

    Raises:
        CompilerError: it cannot be made, or not be written.
    """
    import tempfile

    try:
        os.makedirs(to, exist_ok=True)
        with tempfile.TemporaryFile(dir=to):
            pass
    except OSError as error:
        raise _not_written(to, error) from None


def _not_written(to: str, error: OSError) -> CompilerError:
    reason = error.strerror
    if reason is None:
        number = re.search(r"\[Errno (\d+)\]", str(error))
        reason = os.strerror(int(number[1])) if number is not None else "not all files could be copied"
    return CompilerError(f"{to}: the compiler's dump cannot be written there: {reason}")


def _path(dump: str | os.PathLike[str] | None) -> str | None:
    return None if dump is None else os.fspath(dump)


def _attached_platform() -> Platform:
    from xlamem.compiler.worker import attached_platform

    return attached_platform()
