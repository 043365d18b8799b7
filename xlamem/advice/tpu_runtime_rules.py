"""Rules for a running chip whose HBM is taken: by arrays, by loaded programs, or only in pieces."""

from __future__ import annotations

from collections.abc import Iterator

from xlamem.advice.tpu_rule import compile_here, rule
from xlamem.finding import Advice
from xlamem.report import MemoryReport
from xlamem.units import format_size

_LIST = "for a in sorted(jax.live_arrays(), key=lambda a: -a.nbytes)[:20]: print(a.nbytes, a.shape, a.dtype)"


def runtime_alloc(report: MemoryReport) -> Iterator[Advice]:
    """An array found no room, although the runtime unloads programs before it gives up."""
    yield rule(
        "live-arrays",
        f"See what holds the memory, and drop what is not needed.{_missing(report)}",
        _LIST,
        safe=True,
    )
    yield _donate("so that a step's results take the place of its arguments")
    yield rule(
        "sharded-init",
        "If it failed while parameters or a checkpoint were loaded: create them sharded, not on one chip "
        "first.",
        "params = jax.jit(init, out_shardings=shardings)(key)",
        safe=True,
    )
    yield _log_allocations()


def fragmentation(report: MemoryReport) -> Iterator[Advice]:
    """There is room enough, but not in one piece."""
    space = report.space
    asked = (
        format_size(space.requested)
        if space is not None and space.requested is not None
        else "what was asked for"
    )
    yield rule(
        "free-first",
        f"There is room for {asked}, only not in one piece, and the runtime has already tried to move "
        "things together. Free arrays and loaded programs before this point, the large ones first.",
        "del old_state; jax.clear_caches()  # programs are loaded again when they are called",
        safe=True,
    )
    yield rule(
        "host-init",
        "If it happens at the start: arrays that come and go during initialisation leave holes. Initialise "
        "on the host, then move.",
        'with jax.default_device(jax.local_devices(backend="cpu")[0]): params = init(key)\n'
        "params = jax.device_put(params, shardings)",
        safe=True,
    )
    yield _log_allocations()


def program_load(report: MemoryReport) -> Iterator[Advice]:
    """The compiled program fits the chip, but not beside what is there now."""
    program = report.program or "the program"
    yield rule(
        "live-arrays",
        f"It compiled, but {program} needs its temporaries in one piece beside the arrays that are "
        f"there.{_missing(report)} See what holds the memory, and drop what is not needed.",
        _LIST,
        safe=True,
    )
    yield _donate("so that old and new state are not both there")
    yield rule(
        "fewer-programs",
        "Every compiled function that was called stays loaded: drop those that are done, and avoid "
        "compiling one for every shape.",
        "jax.clear_caches()",
        safe=True,
    )
    yield compile_here(report)
    yield _log_allocations()


def _missing(report: MemoryReport) -> str:
    space = report.space
    if space is None or space.requested is None:
        return ""
    there = space.reservable if space.reservable is not None else space.free
    if there is None or int(there) >= int(space.requested):
        return ""
    return f" About {format_size(int(space.requested) - int(there))} are missing."


def _donate(why: str) -> Advice:
    return rule(
        "donate",
        f"Donate arguments, {why}. Sound only where the caller drops the old arrays.",
        "step = jax.jit(step, donate_argnums=(0,))",
        safe=True,
    )


def _log_allocations() -> Advice:
    return rule(
        "log-allocations",
        "libtpu can write down everything that is allocated when it runs out.",
        "LIBTPU_INIT_ARGS=--tpu_log_allocations_on_oom=true python train.py",
        safe=True,
    )
