"""Rules for a memory on the chip: VMEM, SMEM, semaphores, the SparseCore's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.advice.tpu_rule import rule
from xlamem.finding import Advice
from xlamem.report import MemoryReport, Space
from xlamem.targets import all_devices, get
from xlamem.units import format_size, slack_of

_MIB = 1 << 20
#: What the compiler gives a kernel by itself, on the chips that get least.
_DEFAULT_LIMIT = 16 * _MIB
_WINDOW = re.compile(
    r"window shape is ([\w\[\],]{3,80}?),? while the full shape is ([\w\[\],]{3,80}?)(?=[.\s]|$)"
)
_BUFFERED = re.compile(r"has (\d{1,3}) buffering levels")
_KERNEL = re.compile(r"tpu_custom_call|pallas_call|[Mm]osaic")
_KERNEL_TAG = re.compile(r"window allocation|scratch operand|operand span")


def onchip(report: MemoryReport) -> Iterator[Advice]:
    """By the memory that ran out."""
    space = report.space
    if space is None:
        return
    rules = {"vmem": _vmem, "smem": _smem, "sflag": _sflag}
    if report.source.format == "sparsecore-alloca":
        yield from _sparsecore()
    elif space.name in rules:
        yield from rules[space.name](report, space)


def is_kernel(report: MemoryReport) -> bool | None:
    """Whether a Pallas kernel asked for the memory; None where the text does not tell."""
    if report.source.format == "mosaic-scoped-vmem":
        return True
    for a in report.allocations:
        words = f"{a.name or ''} {a.op_name or ''} {a.label or ''}"
        if _KERNEL.search(words) or _KERNEL_TAG.search(a.tag or ""):
            return True
    return False if any(a.name or a.label or a.op_name for a in report.allocations) else None


def _vmem(report: MemoryReport, space: Space) -> Iterator[Advice]:
    kernel = is_kernel(report)
    needed = space.used if space.used is not None else space.requested
    limit = space.capacity
    if kernel:
        yield _blocks(report)
    if kernel is False:
        yield from _compilers_own(space)
    if needed is None or limit is None:
        return
    most = _physical(report)
    # Printed figures are rounded: the next whole MiB is enough.
    bytes_needed = -(-(int(needed) + slack_of(needed)) // _MIB) * _MIB
    if kernel is False:
        bytes_needed = max(bytes_needed, _DEFAULT_LIMIT)
    # A buffer measured against the whole memory: no limit to raise.
    if report.source.format == "tpu-one-buffer" or bytes_needed > most:
        return
    if kernel:
        yield rule(
            "vmem-limit",
            f"Or give this kernel more than {format_size(limit)}, if the chip has as much: it asks for "
            f"{format_size(needed)}. VMEM that a kernel takes is missing for what XLA keeps there around it.",
            f"pl.pallas_call(..., compiler_params=pltpu.CompilerParams(vmem_limit_bytes={bytes_needed}))",
            safe=True,
        )
    yield rule(
        "scoped-vmem-flag",
        "Raise the limit for the whole program: libtpu reads the flag once, so set it before the first use "
        "of the TPU, in the environment rather than in the program.",
        f"LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib={bytes_needed // 1024} python train.py",
        safe=True,
    )


def _blocks(report: MemoryReport) -> Advice:
    text = "Smaller blocks: a kernel holds the blocks of its operands and results in VMEM, and its scratch."
    how = "pl.BlockSpec(block_shape, index_map)  # smaller; and the scratch_shapes"
    for a in sorted(report.allocations, key=lambda a: -int(a.bytes)):
        window = _WINDOW.search(a.tag or "")
        if window is None:
            continue
        levels = _BUFFERED.search(a.tag or "")
        held = f", and {levels[1]} of them are held" if levels else ""
        text = f"Smaller blocks: the largest is {window[1]} of {window[2]}{held}, {format_size(a.bytes)}."
        if window[1] == window[2]:
            text += " It is the whole array: give the grid an axis that walks over it."
        break
    return rule("blocks", text, how, safe=True)


def _compilers_own(space: Space) -> Iterator[Advice]:
    if space.capacity is not None and 0 < int(space.capacity) < _DEFAULT_LIMIT:
        yield rule(
            "limit-lowered",
            f"The limit of {format_size(space.capacity)} is below the compiler's own 16MiB: something has "
            "lowered it. Look for --xla_tpu_scoped_vmem_limit_kib in LIBTPU_INIT_ARGS and in the compiler "
            "options.",
            "echo $LIBTPU_INIT_ARGS",
            safe=True,
        )
        return
    yield rule(
        "report-bug",
        "This is no kernel of yours but an operation that XLA fused itself; that it asks for more VMEM "
        "than it may is a compiler bug. Report it with the program's HLO.",
        "XLA_FLAGS=--xla_dump_to=DIR python train.py  # attach *before_optimizations* of the module: "
        "https://github.com/openxla/xla/issues",
    )


def _physical(report: MemoryReport) -> int:
    """All the VMEM of the chip, or of the roomiest one known."""
    device = get(report.target.name) if report.target else None
    if device is not None and device.vmem is not None:
        return device.vmem
    return max((d.vmem for d in all_devices() if d.vmem is not None), default=0)


def _smem(report: MemoryReport, space: Space) -> Iterator[Advice]:
    there = format_size(space.capacity) if space.capacity is not None else "1MiB"
    yield rule(
        "smem",
        f"SMEM holds scalars, {there} in all: long tables, such as the block tables given as scalar "
        "prefetch, overflow it. Keep them in VMEM or HBM and bring in the part that a step needs, or make "
        "them shorter.",
        "pl.BlockSpec(block_shape, index_map, memory_space=pltpu.VMEM)",
        safe=True,
    )


def _sflag(report: MemoryReport, space: Space) -> Iterator[Advice]:
    most = f" At 4 bytes each there is room for {int(space.capacity) // 4}." if space.capacity else ""
    yield rule(
        "semaphores",
        "The memory for semaphores ran out: one for each copy that is under way at the same time is "
        f"enough, used again in turn.{most}",
        "scratch_shapes=[pltpu.SemaphoreType.DMA((n,))]  # a smaller n",
        safe=True,
    )


def _sparsecore() -> Iterator[Advice]:
    yield rule(
        "scratch",
        "If it is a Pallas kernel for the SparseCore: smaller scratch_shapes.",
        "scratch_shapes=[...]",
        safe=True,
    )
    yield rule(
        "collective-offload",
        "If it is a collective that XLA gave to the SparseCore: keep it on the TensorCore.",
        "LIBTPU_INIT_ARGS='--xla_tpu_enable_sparse_core_collective_offload_all_gather=false "
        "--xla_tpu_enable_sparse_core_collective_offload_all_reduce=false'",
        safe=True,
    )
    yield rule(
        "report-bug",
        "Otherwise it is a compiler bug: its own program does not fit its memory. Report it with what it "
        "compiled.",
        "LIBTPU_INIT_ARGS=--xla_sc_dump_mlir_to=DIR  # attach: https://github.com/openxla/xla/issues",
    )
