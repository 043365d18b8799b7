"""Compiling for a TPU that is not there, with libtpu from PyPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamem.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlamem.compiler.target import CompileTarget

#: Distributions whose versions decide the answer.
PACKAGES = ("jax", "jaxlib", "libtpu")

#: What the dump shows once the answer is there: files in the order in which XLA writes them, so that all others
#: that the readers use are whole when one of these appears.
FITS = "after_optimizations_after_buffer_assignment.txt"
DOES_NOT_FIT = "oom_intermediate_module.txt"

#: What a compile without the TPU leaves out.
NOTES = (
    "compiled without a TPU: no device took part, so run-time reservations and fragmentation are not in it",
)


def environment(target: CompileTarget) -> dict[str, str]:
    """What has to be set before the child imports jax.

    libtpu looks for the machine it runs on; these answer for it. Without the last one a second process fails on
    libtpu's lock file, though none of them touches a device.
    """
    return {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }


def require() -> None:
    """Check that libtpu is installed, without loading it.

    Raises:
        MissingExtraError: it is not.
    """
    from importlib.util import find_spec

    if find_spec("libtpu") is None:
        raise MissingExtraError(
            "compiling for TPUs needs libtpu, which is not installed: pip install 'xlamem[tpu]'"
        )


def devices(target: CompileTarget, count: int, memory: int | None) -> Sequence[Any]:
    """At least ``count`` devices of the target, as the compiler knows them. Only in the child."""
    from jax.experimental import topologies

    return topologies.get_topology_desc(platform="tpu", topology_name=target.topology(count)).devices


def compiler_options(target: CompileTarget) -> dict[str, str | bool]:
    """What the compiler is told unless the user says otherwise."""
    return {}
