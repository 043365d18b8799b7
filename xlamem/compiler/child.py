"""Running a job in a child process: start it, listen, know when to stop, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from multiprocessing.connection import Connection
from pathlib import Path

from xlamem.compiler import answer
from xlamem.compiler import job as jobs
from xlamem.compiler.last_words import last_words
from xlamem.compiler.spec import parse_mesh
from xlamem.errors import CompilerError, CompileTimeoutError

__all__ = ["Outcome", "Progress", "started"]

#: Called often while a job runs: what it is at, and for how many seconds the job has run.
Progress = Callable[[str, float], None]

_POLL_SECONDS = 0.03

#: With less than this left a dump was cut off, if something is missing.
_FULL_DISK = 1 << 20


@dataclass(slots=True)
class Outcome:
    """What came out of a job. ``dump`` is gone when the child's folder is."""

    lowered: jobs.Lowered | None = None
    dump: jobs.Dumping | None = None
    compiled: jobs.Compiled | None = None
    over: jobs.OutOfMemory | None = None
    #: The answer was there before the compile ended.
    early: bool = False
    seconds: float = 0.0


class Child:
    """A process that does a job. Use :func:`started`, which also ends it."""

    def __init__(self, job: jobs.Job, folder: Path) -> None:
        self.job = job
        self.folder = folder
        self._log = folder / "log"
        with open(folder / "job.pickle", "wb") as file:
            pickle.dump(job, file)
        reader, writer = os.pipe()
        self._pipe = Connection(reader, writable=False)
        self._begun = time.monotonic()
        try:
            with open(self._log, "wb") as log:
                self._process = subprocess.Popen(
                    command(writer, folder),
                    env=_environment(job),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=(writer,),
                    # A group of its own: Ctrl-C reaches only the parent, and the compiler's helpers end with it.
                    start_new_session=True,
                )
        except BaseException:
            self._pipe.close()
            raise
        finally:
            os.close(writer)

    def wait(
        self,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        on_lowered: Callable[[jobs.Lowered], bool] | None = None,
    ) -> Outcome:
        """Until the job is done, or the answer is there. ``on_lowered`` ends it by returning True.

        Raises:
            CompileTimeoutError: ``timeout`` seconds are over.
            CompileError: whatever the child reported, or it died.
        """
        outcome = Outcome()
        stage = "starting"
        while True:
            elapsed = time.monotonic() - self._begun
            if progress is not None:
                progress(stage, elapsed)
            if timeout is not None and elapsed > timeout:
                raise CompileTimeoutError(
                    f"no answer after {timeout:g} s, while {stage}; allow more with --timeout{self._said()}"
                )
            event = self._event()
            if isinstance(event, jobs.Stage):
                stage = event.text
            elif isinstance(event, jobs.Failed):
                self.check_disk()
                raise event.error
            elif isinstance(event, jobs.Lowered):
                outcome.lowered = event
                if on_lowered is not None and on_lowered(event):
                    break
            elif isinstance(event, jobs.Dumping):
                outcome.dump = event
            elif isinstance(event, jobs.OutOfMemory):
                outcome.over = event
            elif isinstance(event, jobs.Compiled):
                outcome.compiled = event
            elif event is _ENDED:
                self._check_end(outcome, stage)
                break
            elif not self.job.full and _answered(outcome):
                outcome.early = outcome.compiled is None and outcome.over is None
                break
        outcome.seconds = time.monotonic() - self._begun
        return outcome

    def _event(self) -> object:
        """The next event; ``None`` if there is none yet, ``_ENDED`` if there will be no more."""
        try:
            return self._pipe.recv() if self._pipe.poll(_POLL_SECONDS) else None
        except (EOFError, OSError):
            return _ENDED

    def _check_end(self, outcome: Outcome, stage: str) -> None:
        status = self._process.wait()
        done = outcome.compiled or outcome.over or (self.job.lower_only and outcome.lowered)
        if done:
            return
        if _answered(outcome):
            if not self.job.full:
                outcome.early = True  # it died later, over what has no part in memory
                return
            stage = "generating code, after the buffers were assigned"
        self.check_disk()
        if status < 0:
            name = signal.Signals(-status).name
            hint = "; the machine may have run out of memory" if name == "SIGKILL" else ""
            raise CompilerError(
                f"the compiler's process was ended by {name} while {stage}{hint}{self._said()}"
            )
        raise CompilerError(
            f"the compiler's process ended with exit code {status} while {stage}{self._said()}"
        )

    def check_disk(self) -> None:
        """Refuse to go on where the compiler cannot have written all that it found.

        Raises:
            CompilerError: hardly any space is left.
        """
        if shutil.disk_usage(self.folder).free < _FULL_DISK:
            raise CompilerError(
                f"no space is left in {self.folder.parent}, where the compiler writes what it found; "
                "set TMPDIR to another folder"
            )

    def _said(self) -> str:
        words = last_words(self._log)
        return f"; its last words:\n{words}" if words else ""

    def end(self) -> None:
        """End the process and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._pipe.close()


_ENDED = object()


def _answered(outcome: Outcome) -> bool:
    return outcome.dump is not None and answer.is_there(outcome.dump.folder, outcome.dump.platform)


@contextlib.contextmanager
def started(job: jobs.Job) -> Iterator[Child]:
    """A child at work on ``job``. Whatever happens, it is ended and its folder removed.

    Raises:
        CompilerError: there is no room to write.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="xlamem-"))
    except OSError as error:
        raise CompilerError(f"no folder can be made in {tempfile.gettempdir()}: {error.strerror}") from None
    try:
        try:
            child = Child(job, folder)
        except OSError as error:
            raise CompilerError(
                f"{folder}: the compile cannot be started: {error.strerror or error}"
            ) from None
        try:
            yield child
        finally:
            child.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def command(writer: int, folder: Path) -> list[str]:
    """The command line of a child that writes events to ``writer`` and finds its job in ``folder``."""
    # -P: the working directory must not hide modules; user_function adds it where it belongs.
    return [sys.executable, "-P", "-m", "xlamem.compiler.worker", str(writer), str(folder)]


def _environment(job: jobs.Job) -> dict[str, str]:
    environment = {**os.environ, **jobs.backend(job.target.platform).environment(job.target)}
    # At the end: the package may not be installed, and must hide nothing.
    here = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), here)))
    flag = "--xla_force_host_platform_device_count"
    flags = environment.get("XLA_FLAGS", "")
    count = _devices(job)
    if count > 1 and job.target.platform is not None and flag not in flags:
        # The user's code sees as many devices as the target has, though all of them are this CPU.
        environment["XLA_FLAGS"] = f"{flags} {flag}={count}".strip()
    return environment


def _devices(job: jobs.Job) -> int:
    spread = 1 if job.program is None else job.program.devices
    if job.function is not None and job.function.mesh:
        spread = prod(parse_mesh(job.function.mesh).values())
    return max(job.target.devices, spread)
