"""What to do about a GPU or CPU that ran out of memory: rules of thumb that the report supports.

Nothing here is measured. XLA's GPU allocator takes a share of the card at the start, so a failure is about
the program, about that share, or about somebody else on the card; which of them, the figures often tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xlamem.advice.gpu_rows import arguments, by_row, constants, rule
from xlamem.circumstances import AUTOTUNING, GRAPHS
from xlamem.finding import Advice
from xlamem.report import MemoryReport, Space
from xlamem.units import format_size

#: Held by others: from this share of the card on it is worth a word.
_SHARE = 0.25


def actions(report: MemoryReport) -> tuple[Advice, ...]:
    """What the report supports, the most specific first; empty for what is no failure, and for TPUs."""
    space = report.space
    if space is None or report.backend == "tpu" or report.kind in ("benign", "success"):
        return ()
    rules: Callable[[MemoryReport, Space], Iterator[Advice]]
    if report.kind == "not-xla":
        rules = _not_xla
    elif report.backend == "cpu":
        rules = _cpu
    elif report.backend != "gpu":
        return ()
    elif report.kind == "kernel-shared-memory":
        rules = _kernel
    elif report.kind == "host":
        rules = _pinned
    elif report.source.format == "tensorflow-oom":
        rules = _tensorflow
    else:
        rules = _gpu
    found: dict[str, Advice] = {}
    for advice in rules(report, space):
        found.setdefault(advice.name, advice)
    return tuple(found.values())


def _gpu(report: MemoryReport, space: Space) -> Iterator[Advice]:
    if report.source.format == "nccl":
        yield from _nccl()
        return
    if report.source.format == "gpu-context":
        yield _who_else("Hardly any of the card was free when the program started.")
        yield _no_preallocation("For two JAX programs on one card.")
        return
    if AUTOTUNING in report.notes:
        yield rule(
            "autotuning",
            "It failed while XLA tried variants of a kernel, which takes memory of its own; it goes on with "
            "another variant if it can. Without autotuning the kernels may be slower.",
            "XLA_FLAGS=--xla_gpu_autotune_level=0",
        )
    if GRAPHS in report.notes:
        yield rule(
            "cuda-graphs",
            "CUDA graphs keep memory of their own beside XLA's. Without them launches cost more time.",
            "XLA_FLAGS=--xla_gpu_enable_command_buffer=",
        )
    if report.source.format == "gpu-argument-limit":
        yield from arguments("The arguments and results alone exceed what the compiler plans with.")
        return
    if report.source.format == "gpu-constant":
        yield constants(f"A constant of {format_size(space.requested or 0)} is what failed")
    yield from _device_refused(report, space)
    if report.kind == "fragmentation":
        yield from _fragmentation(space)
    yield from by_row(space)
    yield from _share(report, space)
    if report.source.format in ("bfc", "bfc-dump", "gpu-oom", "cuda-async") and not _is_elsewhere(space):
        yield rule(
            "see-the-program",
            "The message does not say which values the memory is for. A compile of the program does, and it "
            "needs no GPU.",
            "xlamem compile train.py:step --inputs train.py:inputs --target h100",
        )


def _is_elsewhere(space: Space) -> bool:
    """Whether the allocator was allowed more than was asked for, and the device did not give it."""
    return bool(
        space.requested and space.reservable is not None and int(space.reservable) >= int(space.requested)
    )


def _device_refused(report: MemoryReport, space: Space) -> Iterator[Advice]:
    if report.source.format == "cuda-async" and _others_hold(space, space.used):
        yield _who_else("Part of the card's memory is neither free nor this program's.")
    elif report.source.format == "gpu-driver":
        yield _who_else("The driver refused memory that the allocator thought was there.")
        yield _no_preallocation("If another program needs the card too.")
    elif _is_elsewhere(space):
        yield _who_else(
            f"The allocator was allowed {format_size(space.reservable or 0)} more, and the device did not "
            "give it."
        )
        yield rule(
            "tensorflow-beside",
            "TensorFlow in the same process takes the GPU too, even if it only reads the data.",
            'tf.config.set_visible_devices([], "GPU")',
        )


def _share(report: MemoryReport, space: Space) -> Iterator[Advice]:
    """The share of the card that XLA may use."""
    if _is_elsewhere(space) or report.source.format == "gpu-driver":
        return
    if report.source.format in ("bfc", "bfc-dump") and space.capacity:
        yield rule(
            "mem-fraction",
            f"The allocator's limit is {format_size(space.capacity)}. JAX sets it to 75% of the card unless "
            "told otherwise; if that is less than the card has, raise it (older jaxlib: "
            "XLA_PYTHON_CLIENT_MEM_FRACTION).",
            "XLA_CLIENT_MEM_FRACTION=0.92",
        )
        yield _who_else("What other programs hold is not in this limit.")
    elif report.kind in ("hbm", "runtime-alloc") and space.capacity is None:
        yield rule(
            "mem-fraction",
            "The message does not say how much there was. JAX takes 75% of the card unless told otherwise "
            "(older jaxlib: XLA_PYTHON_CLIENT_MEM_FRACTION).",
            "XLA_CLIENT_MEM_FRACTION=0.92",
        )
        yield _who_else("Another program on the card, or TensorFlow beside JAX, leaves less for this one.")


def _fragmentation(space: Space) -> Iterator[Advice]:
    largest = f" (the largest was {format_size(space.largest_free)})" if space.largest_free else ""
    yield rule(
        "fragmentation",
        f"There was enough free memory, in pieces that were too small{largest}. The driver's own pool can "
        "put pieces together.",
        "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async",
    )
    yield rule(
        "platform-allocator",
        "Memory taken and given back exactly as needed does not stay in pieces. It is slow: a test, not a "
        "cure.",
        "XLA_PYTHON_CLIENT_ALLOCATOR=platform",
    )
    yield rule(
        "free-arrays",
        "Arrays kept from earlier steps and programs no longer needed hold the places between the pieces.",
        "x.delete(); jax.clear_caches()",
        safe=None,
    )


def _who_else(reason: str) -> Advice:
    return rule("who-else", f"{reason} See who holds the card.", "nvidia-smi")


def _no_preallocation(reason: str) -> Advice:
    return rule(
        "preallocation",
        f"{reason} JAX takes 75% of the card at its start; without that it takes what it needs, and the "
        "memory may end up in pieces.",
        "XLA_PYTHON_CLIENT_PREALLOCATE=false",
    )


def _nccl() -> Iterator[Advice]:
    yield rule(
        "mem-fraction",
        "NCCL's buffers come from what XLA has not taken: leave it more (older jaxlib: "
        "XLA_PYTHON_CLIENT_MEM_FRACTION).",
        "XLA_CLIENT_MEM_FRACTION=0.7",
    )
    yield _who_else("Another program on the card leaves NCCL less.")
    yield rule("nccl-log", "NCCL can say which of its buffers it was.", "NCCL_DEBUG=INFO")


def _kernel(report: MemoryReport, space: Space) -> Iterator[Advice]:
    sizes = ""
    if space.requested is not None and space.capacity is not None:
        sizes = f" of {format_size(space.requested)} where a block can have {format_size(space.capacity)}"
    yield rule(
        "smaller-blocks",
        f"The kernel asks for shared memory{sizes}: make its blocks smaller, or halve the element type. The "
        "GPU's own memory and the preallocation flags have nothing to do with it.",
        "pl.BlockSpec((64, 64), lambda i, j: (i, j))",
    )
    yield rule(
        "num-stages",
        "Each pipeline stage keeps its own copy of the blocks: fewer stages need less.",
        "compiler_params=plgpu.CompilerParams(num_stages=1)",
    )
    yield rule(
        "no-triton",
        "If it is none of your own kernels but one that XLA made of a matrix product, XLA can do without.",
        "XLA_FLAGS=--xla_gpu_enable_triton_gemm=false",
    )


def _pinned(report: MemoryReport, space: Space) -> Iterator[Advice]:
    if report.source.format in ("gpu-oom", "gpu-buffer-assignment") or "host" in report.message.lower():
        yield rule(
            "host-limit",
            "Pinned host memory, where offloaded arrays live, is limited to 64 GB unless told otherwise.",
            "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=128",
        )
    yield rule(
        "host-free",
        "Pinned memory cannot be swapped: it must be free in the machine, and in the container's limit.",
        "free -g; ulimit -l",
    )


def _cpu(report: MemoryReport, space: Space) -> Iterator[Advice]:
    asked = f" for {format_size(space.requested)} at once" if space.requested else ""
    yield rule(
        "host-free",
        f"The host's memory was asked{asked}: compare it with what is free, and with the limit of the "
        "container.",
        "free -g; ulimit -v",
    )
    if report.source.format == "cpu-oom":
        yield rule(
            "is-it-the-gpu",
            "It is the CPU backend that failed. If the program should run on a GPU or TPU, JAX did not "
            "find it.",
            'python -c "import jax; print(jax.devices())"',
        )


def _tensorflow(report: MemoryReport, space: Space) -> Iterator[Advice]:
    yield rule(
        "batch",
        "One tensor did not fit beside all that is held already: a smaller batch makes it and its kind "
        "smaller.",
        None,
        safe=None,
    )
    yield rule(
        "memory-growth",
        "TensorFlow takes the whole card at its start; with growth it takes what it needs and shares the "
        "card.",
        "tf.config.experimental.set_memory_growth(gpu, True)",
    )
    yield _who_else("Another program on the card, or JAX in the same process, leaves less for this one.")


def _not_xla(report: MemoryReport, space: Space) -> Iterator[Advice]:
    if report.source.format == "cupy-oom":
        yield rule(
            "not-xla",
            "This is CuPy's memory, not XLA's. CuPy's pool keeps what it once had.",
            "cupy.get_default_memory_pool().free_all_blocks()",
        )
        return
    yield rule(
        "not-xla",
        "This is PyTorch's memory, not XLA's: nothing here can look into it. PyTorch itself can.",
        "print(torch.cuda.memory_summary())",
    )
    if space.free is not None and space.requested is not None and int(space.free) >= int(space.requested):
        yield rule(
            "fragmentation",
            "More was free than was asked for, so it was in pieces.",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        )
    if any("memory in use" in note for note in report.notes) or _others_hold(space, space.reserved):
        yield _who_else("Part of the card is held outside PyTorch; JAX in the same process takes 75% of it.")
        yield _no_preallocation("If JAX runs in the same process.")


def _others_hold(space: Space, ours: int | None) -> bool:
    """Whether much of the card is neither free nor ``ours``."""
    if space.capacity is None or space.free is None or ours is None:
        return False
    return int(space.capacity) - int(space.free) - int(ours) >= _SHARE * int(space.capacity)
