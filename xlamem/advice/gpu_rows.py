"""What helps for the part of a program that did not fit: its temporaries, results, constants or arguments."""

from __future__ import annotations

from collections.abc import Iterator

from xlamem.circumstances import failed_rows
from xlamem.finding import Advice
from xlamem.report import Space
from xlamem.units import format_size

#: Arguments or constants of this share of all are worth a word, whatever failed.
_SHARE = 0.25


def rule(name: str, text: str, how: str | None, safe: bool | None = True) -> Advice:
    """A rule of thumb: never verified, always estimated."""
    return Advice(name=name, text=text, how=how, safe=safe, verified=False, provenance="estimated")


def by_row(space: Space) -> Iterator[Advice]:
    """First for the allocation that failed, where the requested bytes are one of the program's rows."""
    rows = failed_rows(space)
    failed = rows[0] if rows else None
    if failed == "temps":
        yield from _temps(format_size(space.temps or 0))
    elif failed == "outputs":
        yield _donate(f"The results ({format_size(space.outputs or 0)}) are what failed.")
    elif failed == "constants":
        yield constants(f"The program's constants ({format_size(space.constants or 0)}) are what failed")
    total = int(space.total or 0)
    if space.constants and space.constants >= _SHARE * total > 0:
        yield constants(f"{format_size(space.constants)} of the program are constants")
    if space.arguments and space.arguments >= _SHARE * total > 0:
        yield from arguments(f"The arguments take {format_size(space.arguments)} of {format_size(total)}.")


def _temps(size: str) -> Iterator[Advice]:
    yield rule(
        "remat",
        f"The temporaries ({size}) are what failed: computing activations a second time instead of keeping "
        "them often makes them much smaller. It costs time.",
        "f = jax.checkpoint(f)",
    )
    yield rule(
        "microbatch",
        "A smaller batch makes the temporaries smaller; several microbatches whose gradients are added up "
        "give the same step.",
        "grads, _ = jax.lax.scan(\n"
        "    lambda total, batch: (jax.tree.map(jnp.add, total, jax.grad(loss)(params, batch)), None),\n"
        "    jax.tree.map(jnp.zeros_like, params), microbatches)",
        safe=None,
    )
    yield rule(
        "slop-factor",
        "XLA rematerializes by itself only near its own limit, 95% of what it thinks there is: with a lower "
        "one it starts earlier. Whether it finds anything, only a compile tells.",
        "XLA_FLAGS=--xla_gpu_memory_limit_slop_factor=70",
    )


def constants(reason: str) -> Advice:
    """For arrays that the program carries inside it."""
    return rule(
        "constants",
        f"{reason}: arrays that the function closes over are copied into it. Passed as arguments they are "
        "not.",
        "jax.jit(f)(x, table)",
    )


def arguments(reason: str) -> Iterator[Advice]:
    """For parameters, optimizer state and batch."""
    yield _donate(reason)
    yield rule(
        "shard-arguments",
        f"{reason} On several GPUs parameters and optimizer state can be split instead of copied.",
        'state = jax.device_put(state, NamedSharding(mesh, PartitionSpec("data")))',
    )


def _donate(reason: str) -> Advice:
    return rule(
        "donate",
        f"{reason} Where results replace arguments of the same shape, donating those lets them share the "
        "memory; the old arrays are gone after the call.",
        "step = jax.jit(step, donate_argnums=(0,))",
    )
