"""The child process of one compile: ``python -m xlamem.compiler.worker FD FOLDER``.

A compiler can kill its process, writes on file descriptor 2 and reads its environment once, so each compile has
a process of its own. ``FOLDER`` holds the job; events go to the pipe ``FD``. Standard input tells when the
parent is gone: then this process ends too, and takes the folder with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from xlamem.compiler import job as jobs
from xlamem.errors import CompilerError, ProgramError, XlamemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlamem.compiler.program import Program
    from xlamem.compiler.target import Platform

_JOB = "job.pickle"

#: What jax calls its backends -> what it lowers for.
_PLATFORMS: dict[str, Platform] = {"tpu": "tpu", "gpu": "cuda", "cuda": "cuda", "cpu": "cpu"}


def main(arguments: list[str]) -> None:
    """Do the job in a folder, and send what happens."""
    pipe = Connection(int(arguments[0]), readable=False)
    folder = Path(arguments[1])
    _end_with_parent(folder)
    from xlamem.compiler import recorder

    record = recorder.start()
    with open(folder / _JOB, "rb") as file:
        job: jobs.Job = pickle.load(file)
    try:
        try:
            _run(job, folder, pipe.send, record)
        except XlamemError as error:
            pipe.send(jobs.Failed(error))
    except BrokenPipeError:
        _vanish(folder)
    pipe.close()
    # Compilers have threads that do not end in good order.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with_parent(folder: Path) -> None:
    """Watch standard input, which only ends when the parent does, however it was ended."""

    def watch() -> None:
        while os.read(0, 64):
            pass
        _vanish(folder)

    threading.Thread(target=watch, daemon=True).start()


def _vanish(folder: Path) -> NoReturn:
    """End this process and its helpers at once, and have the folder removed when nobody writes there any more."""
    remove = ["/bin/sh", "-c", 'sleep 0.2; exec rm -rf -- "$0"', str(folder)]
    subprocess.Popen(remove, start_new_session=True, stdin=subprocess.DEVNULL)
    os.killpg(0, signal.SIGKILL)
    raise SystemExit  # not reached


def _run(job: jobs.Job, folder: Path, send: Callable[[jobs.Event], None], record: Any) -> None:
    backend = jobs.backend(job.target.platform)
    backend.require()
    send(jobs.Stage("starting"))
    try:
        from xlamem.compiler import jax_private
    except ImportError as error:
        raise CompilerError(f"jax cannot be imported: {error}") from None
    jax_private.check_version()
    platform = job.target.platform or attached_platform()
    program = _program(job, platform, send)
    send(jobs.Lowered(program, *record.so_far(folder)))
    if job.lower_only:
        return
    _compile(job, program, platform, folder, send)


def attached_platform() -> Platform:
    import jax

    try:
        name = jax.default_backend()
    except RuntimeError as error:
        raise CompilerError(_explained(str(error))) from None
    if name not in _PLATFORMS:
        raise CompilerError(f"no way is known to compile for {name!r} devices")
    return _PLATFORMS[name]


def _program(job: jobs.Job, platform: Platform, send: Callable[[jobs.Event], None]) -> Program:
    if job.program is not None:
        if job.program.platform not in (None, platform):
            raise ProgramError(f"the program was lowered for {job.program.platform}, not for {platform}")
        return job.program
    if job.path is not None:
        from xlamem.compiler import foreign

        return foreign.load(job.path, platform, job.module)
    assert job.function is not None
    from xlamem.compiler import user_function

    send(jobs.Stage("tracing"))
    return user_function.trace(job.function, job.target, platform)


def _compile(
    job: jobs.Job, program: Program, platform: Platform, folder: Path, send: Callable[[jobs.Event], None]
) -> None:
    from xlamem.compiler import gpu

    backend = jobs.backend(job.target.platform)
    try:
        devices = list(backend.devices(job.target, program.devices, job.memory))
    except XlamemError:
        raise
    except Exception as error:
        raise CompilerError(
            f"the compiler for {job.target} cannot be started: {_explained(str(error))}"
        ) from None
    if len(devices) < program.devices:
        raise ProgramError(
            f"{program.name} is spread over {program.devices} devices, and {job.target} has {len(devices)}: "
            "name a larger slice, or give the inputs shardings over fewer devices"
        )
    devices = devices[: program.devices]
    send(jobs.Stage("compiling"))
    options = {**backend.compiler_options(job.target), **job.xla_options}
    capacity = None if job.target.device is not None else _capacity(devices[0])
    try:
        executable = _attempt(program, devices, options, folder / "dump", platform, capacity, (), send)
    except _NoTilesError:
        options[gpu.TRITON_OPTION] = False
        notes = (gpu.TRITON_NOTE,)
        executable = _attempt(program, devices, options, folder / "again", platform, capacity, notes, send)
    if executable is not None:
        send(_facts(executable))


class _NoTilesError(Exception):
    """XLA found no tiles for a matrix product that it fused."""


def _attempt(
    program: Program,
    devices: list[Any],
    options: dict[str, str | bool],
    dump: Path,
    platform: Platform,
    capacity: int | None,
    notes: tuple[str, ...],
    send: Callable[[jobs.Event], None],
) -> Any:
    """The executable; None if the program does not fit."""
    from xlamem.compiler import gpu, jax_private

    dump.mkdir()
    dumped: dict[str, str | bool] = {
        "xla_dump_to": str(dump),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_as_proto": True,
    }
    with jax_private.parsed(program.code) as module:
        inputs, outputs = _unsharded(module)
        send(jobs.Dumping(str(dump), platform, capacity, notes))
        try:
            return jax_private.compile_module(
                module,
                devices,
                {**options, **dumped},
                shardy=program.shardy,
                propagate_to_inputs=inputs,
                propagate_to_outputs=outputs,
            )
        except XlamemError:
            raise
        except Exception as error:
            message = str(error)
            if "RESOURCE_EXHAUSTED" in message:
                send(jobs.OutOfMemory(message))
                return None
            if gpu.TRITON_FAILURE in message and gpu.TRITON_OPTION not in options:
                raise _NoTilesError from None
            raise CompilerError(f"the compiler refused {program.name}: {_explained(message)}") from None


def _unsharded(module: Any) -> tuple[list[bool], list[bool]]:
    """Which inputs and results of an MLIR module have no sharding: there the compiler may choose one."""
    from jaxlib.mlir import ir

    from xlamem.compiler.lowering import main_function

    attributes = main_function(module).attributes
    type_ = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
    return (
        _without_sharding(attributes, "arg_attrs", len(type_.inputs)),
        _without_sharding(attributes, "res_attrs", len(type_.results)),
    )


def _without_sharding(attributes: Any, name: str, count: int) -> list[bool]:
    if name not in attributes:
        return [True] * count
    return ["sdy.sharding" not in one and "mhlo.sharding" not in one for one in attributes[name]]


def _capacity(device: Any) -> int | None:
    """What an attached device lets a program take, in bytes; None where it does not say."""
    try:
        limit = (device.memory_stats() or {}).get("bytes_limit")
    except Exception:  # each backend has its own way to have none
        return None
    return int(limit) if limit else None


def _facts(executable: Any) -> jobs.Compiled:
    from xlamem.compiler import jax_private

    facts = jax_private.cost_analysis(executable)
    return jobs.Compiled(flops=facts.get("flops"), bytes_accessed=facts.get("bytes accessed"))


def _explained(message: str) -> str:
    """The compiler's ``message``, with what to do in the cases that are known."""
    lowered = message.lower()
    if "lockfile" in lowered or "already in use" in lowered or "libtpu multi-process" in lowered:
        return (
            f"{message.strip()}\nanother process holds libtpu: end it, or remove its lock file "
            "/tmp/libtpu_lockfile where none is running"
        )
    return message.strip()


if __name__ == "__main__":
    main(sys.argv[1:])
