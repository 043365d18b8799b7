"""Compiling for an NVIDIA GPU that is not there, with JAX's CUDA plugin and ptxas from PyPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamem.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlamem.compiler.target import CompileTarget

PACKAGES = (
    "jax",
    "jaxlib",
    "jax-cuda12-plugin",
    "jax-cuda13-plugin",
    "nvidia-cuda-nvcc-cu12",
    "nvidia-cuda-nvcc",
)

#: Written after the table of allocations, its module and its live ranges.
ASSIGNED = "gpu_after_optimizations-memory-usage-report.pb"

#: JAX's allocator takes this share of the memory when it starts, unless told otherwise.
DEFAULT_FRACTION = 0.75

#: XLA plans with this share of what it takes for the device's memory.
_PLANNED = 0.8

#: What a compile without the GPU cannot know.
NOTES = (
    "compiled without a GPU: kernels were not tuned, so another choice of algorithms can need other scratch memory",
    "not counted, as they are not part of the program: the CUDA context, NCCL's buffers, and the workspace of "
    "cuDNN convolutions and of sorts (shown as u8[0])",
)

#: XLA does not compile some fused matrix products unless it may try them on a device.
TRITON_OPTION = "xla_gpu_enable_triton_gemm"
TRITON_FAILURE = "Couldn't find output tile sizes"
TRITON_NOTE = (
    f"compiled again with {TRITON_OPTION}=false: without a GPU to try on, XLA found no tiles for a fused "
    "matrix product"
)

_CONFIG = """
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {gpu.shared_memory}
  shared_memory_per_block_optin: {gpu.shared_memory_optin}
  threads_per_core_limit: 2048
  core_count: {gpu.multiprocessors}
  fpus_per_core: {gpu.fp32_units}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {gpu.bandwidth}
  l2_cache_size: {gpu.l2_cache}
  clock_rate_ghz: {gpu.clock_ghz}
  device_memory_size: {memory}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability {{ major: {major} minor: {minor} }}
}}
platform_name: "CUDA"
device_description_str: "{name}"
"""


def environment(target: CompileTarget) -> dict[str, str]:
    """What has to be set before the child imports jax.

    The second lets the plugin load without CUDA's libraries, which only a run needs; jax 0.8 insists on them.
    """
    return {"JAX_PLATFORMS": "cpu", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}


def require() -> None:
    """Check that the CUDA plugin and ptxas are installed, without loading them.

    Raises:
        MissingExtraError: one is not.
    """
    from importlib.util import find_spec

    if find_spec("jax_cuda12_plugin") is None and find_spec("jax_cuda13_plugin") is None:
        raise MissingExtraError(
            "compiling for NVIDIA GPUs needs JAX's CUDA plugin, which is not installed: pip install 'xlamem[gpu]'"
        )
    if find_spec("nvidia") is None:
        raise MissingExtraError(
            "compiling for NVIDIA GPUs needs ptxas, which is not installed: pip install 'xlamem[gpu]'"
        )


def usable(target: CompileTarget, fraction: float | None) -> int:
    """Bytes that a program may take: JAX's share of the device's memory."""
    assert target.device is not None
    return int(target.device.memory * (DEFAULT_FRACTION if fraction is None else fraction))


def config(target: CompileTarget, memory: int) -> str:
    """The GpuTargetConfigProto of the target, as text, for programs that may take ``memory`` bytes.

    Every field is needed: where one is missing, XLA divides by zero.
    """
    device = target.device
    assert device is not None
    assert device.compute_capability is not None
    major, minor = device.compute_capability.split(".")
    return _CONFIG.format(
        gpu=device.gpu, memory=round(memory / _PLANNED), major=major, minor=minor, name=device.aliases[-1]
    )


def devices(target: CompileTarget, count: int, memory: int | None) -> Sequence[Any]:
    """At least ``count`` devices of the target, as the compiler knows them. Only in the child."""
    from jax.experimental import topologies

    return topologies.get_topology_desc(
        "", platform="cuda", target_config=config(target, memory or 0), topology=target.topology(count)
    ).devices


def compiler_options(target: CompileTarget) -> dict[str, str | bool]:
    """What the compiler is told unless the user says otherwise: there is nothing to tune kernels on."""
    return {"xla_gpu_autotune_level": "0"}
