"""Compiling for the CPU of this machine, and for whatever devices are attached to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlamem.compiler.target import CompileTarget

PACKAGES = ("jax", "jaxlib")

ASSIGNED = "cpu_after_optimizations-memory-usage-report.pb"

#: A CPU program's memory is the machine's, and no compiler limits it.
NOTES = ("for a CPU nothing limits a program but the machine's memory: whether it fits is not decided",)


def environment(target: CompileTarget) -> dict[str, str]:
    """What has to be set before the child imports jax. Attached devices are left to JAX, but not filled at once."""
    return (
        {"JAX_PLATFORMS": "cpu"} if target.platform == "cpu" else {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    )


def require() -> None:
    """Nothing more than jax is needed."""


def devices(target: CompileTarget, count: int, memory: int | None) -> Sequence[Any]:
    """The devices that are there. Only in the child."""
    import jax

    return jax.devices()


def compiler_options(target: CompileTarget) -> dict[str, str | bool]:
    """What the compiler is told unless the user says otherwise."""
    return {}
