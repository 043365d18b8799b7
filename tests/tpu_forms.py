"""The TPU forms of a line or a few: how tests read them, and inputs of our own in the forms only described."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

from xlamem.readers.lines import Lines, normalise
from xlamem.readers.remat import read_remat
from xlamem.readers.scoped_vmem import read_scoped_vmem
from xlamem.readers.sparsecore import WORD, read_sparsecore
from xlamem.readers.tpu_lines import read_tpu_lines
from xlamem.readers.tpu_mismatch import read_tpu_mismatch
from xlamem.readers.tpu_one_buffer import read_tpu_one_buffer
from xlamem.readers.tpu_runtime import read_tpu_runtime
from xlamem.report import MemoryReport, Space
from xlamem.units import parse_size, size_from

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
READERS: tuple[Callable[[Lines, str], Iterator[MemoryReport]], ...] = (
    read_tpu_lines,
    read_tpu_one_buffer,
    read_scoped_vmem,
    read_sparsecore,
    read_tpu_mismatch,
    read_tpu_runtime,
    read_remat,
)
FIGURES = [f.name for f in fields(Space) if f.name != "name"]


def read(text: str) -> list[MemoryReport]:
    lines = normalise(text)
    return [report for reader in READERS for report in reader(lines, "x.log")]


def figures(report: MemoryReport) -> dict[str, int]:
    """The figures of the report's own space."""
    assert report.space is not None
    return {name: int(value) for name in FIGURES if (value := getattr(report.space, name)) is not None}


def sizes(**texts: str) -> dict[str, int]:
    return {name: int(parse_size(text)) for name, text in texts.items()}


def log(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


def only(text: str) -> MemoryReport:
    found = read(text)
    assert len(found) == 1, found
    return found[0]


_SIZES = re.compile(r"(?<![\d.])(\d{1,20}(?:\.\d{1,6})?)([KMGTPE](?:i?B)?|B)?(?![A-Za-z0-9])")
# Two damages at once can join numbers; a joined number is in the text too.


def printed(text: str) -> set[int]:
    """Every number of ``text``, as it would be read: with its unit, plain, and as words of a SparseCore."""
    found: set[int] = set()
    for number, unit in _SIZES.findall(text):
        found.add(int(size_from(number, unit)))
        if "." not in number:
            found.update((int(number), WORD * int(number)))
    return found


def assert_sound(text: str) -> None:
    for report in read(text):
        known = printed(normalise(text).text)
        for space in report.spaces:
            for name in FIGURES:
                value = getattr(space, name)
                assert value is None or int(value) in known, (name, value, report.message)
        for a in report.allocations:
            assert a.reported_bytes is None or int(a.reported_bytes) in known


# Forms that were only described: inputs of our own.
OWN: dict[str, tuple[str, tuple[str, str, str], dict[str, int]]] = {
    "early abort of an older compiler": (
        "RuntimeError: RESOURCE_EXHAUSTED: Compilation failure: Aborting compilation early because it's unlikely "
        "to have enough memory. Requires 1.21T, has 90.95G available. If more detailed logging is desired, set "
        "--xla_tpu_impure_oom_fast_exit_threshold=-1\n",
        ("hbm", "tpu-early-abort", "hbm"),
        sizes(used="1.21T", capacity="90.95G"),
    ),
    "cores": (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: TPU TensorCore Hbm usage: 12.50G, "
        "SparseCore Hbm usage 88.25G, exceeding available bytes: 95.74G\n",
        ("hbm", "tpu-cores-line", "hbm"),
        sizes(capacity="95.74G"),
    ),
    "cores, first half": (
        "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 7.00G, SparseCore Hbm usage 90.01G, exceeding avail\n",
        ("hbm", "tpu-cores-line", "hbm"),
        {},
    ),
    "mosaic": (
        "ValueError: Mosaic failed to compile TPU kernel: Insufficient scoped vmem: 44.05M > 32M\n",
        ("onchip", "mosaic-scoped-vmem", "vmem"),
        sizes(used="44.05M", capacity="32M"),
    ),
    "mosaic, no stop": (
        "INTERNAL: Mosaic: Insufficient scoped vmem: 129.00M > 128.00M.\n",
        ("onchip", "mosaic-scoped-vmem", "vmem"),
        sizes(used="129.00M", capacity="128.00M"),
    ),
    "scoped smem": (
        "E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space smem while allocating on stack for "
        '%k.3 = f32[8]{0} custom-call(%x), custom_call_target="tpu_custom_call". Scoped allocation with size '
        "1.50M and limit 1.00M exceeded scoped smem limit by 512.0K.\n",
        ("onchip", "tpu-scoped-vmem", "smem"),
        sizes(used="1.50M", capacity="1.00M", over="512.0K"),
    ),
    "scoped figures alone": (
        "Scoped allocation with size 22.50M and limit 16.00M exceeded scoped vmem limit by 6.50M.\n",
        ("onchip", "tpu-scoped-vmem", "vmem"),
        sizes(used="22.50M", capacity="16.00M", over="6.50M"),
    ),
    "tile memory": (
        "INTERNAL: E3000: CompileTimeSparseCoreAllocationFailure: Failed to run pass pipeline. Hlo-Op: "
        "gather.7:12:1: error: 'memref.alloca' op current allocation offset upper bound (150000 words) exceeds "
        "the legitimate user allocatable offset upper bound (131071 words) in memory space 201 when allocating "
        '30000 words. gather.7:12:1: note: see current operation: %9 = "memref.alloca"() : () -> '
        "memref<30000xf32, 201>\n",
        ("onchip", "sparsecore-alloca", "tilespmem"),
        {"used": 150000 * WORD, "capacity": 131071 * WORD, "requested": 30000 * WORD},
    ),
    "tables": (
        "'memref.alloca' op current allocation offset upper bound (9000000000 words) exceeds the legitimate user "
        "allocatable offset upper bound (8000000000 words) in memory space 203 when allocating 7000000000 words.\n",
        ("hbm", "sparsecore-alloca", "hbm"),
        {"used": 9000000000 * WORD, "capacity": 8000000000 * WORD, "requested": 7000000000 * WORD},
    ),
    "one buffer, first sentence": (
        "RESOURCE_EXHAUSTED: Allocation (size=34359738368) would exceed memory (size=33822867456)\n",
        ("hbm", "tpu-one-buffer", "hbm"),
        {"requested": 34359738368, "capacity": 33822867456},
    ),
    "remat on a GPU": (
        "W0603 07:41:11.123456    5182 hlo_rematerialization.cc:3231] Can't reduce memory use below 18.02GiB "
        "(19348827000 bytes) by rematerialization; only reduced to 44.10GiB (47352014438 bytes), down from "
        "45.00GiB (48318382080 bytes) originally\n",
        ("remat-warning", "remat", "hbm"),
        {"goal": 19348827000, "used": 47352014438},
    ),
    "remat, only the limit": (
        "XLA::TPU rematerialization limit 12.92G = 95% hbm (14.96G) - (arguments (2.03G) - aliased_output(0B)) - "
        "overlays (16.17M)\n",
        ("remat-warning", "remat", "hbm"),
        sizes(goal="12.92G", arguments="2.03G", aliased="0B", overlays="16.17M"),
    ),
}

# Messages of a running TPU.
BUFFER = (
    "ValueError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 129.50M. That was not "
    "possible. There are 78.17M free.; (0x0x0_HBM0)\n"
)
CODED = (
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E0100: RuntimeBufferAllocationFailure:\nError allocating device "
    "buffer: Attempting to allocate 556.00M.\nThat was not possible. There are 289.98M free.; (0x1x0_HBM0)\n"
)
PIECES = (
    "RuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 31.06M. That was not possible. There are 58.64M free. "
    "Due to fragmentation, the largest contiguous region of free memory is 30.56M.; (0x0x0_HBM0)\n"
)
PIECES_NEW = (
    "RESOURCE_EXHAUSTED: E0100: RuntimeBufferAllocationFailure: Attempting to allocate 2.00G. That was not "
    "possible. There are 3.25G free. The largest contiguous region of free memory is 1.75G due to "
    "fragmentation.; (1x0x0_HBM0)\n"
)
LOAD = (
    "XlaRuntimeError: RESOURCE_EXHAUSTED: Error loading program 'jit_train_step': Attempting to reserve 6.48G at "
    "the bottom of memory. That was not possible. There are 5.91G free, 0B reserved, and 5.91G reservable. Scope: "
    "unknown..: while running replica 0 and partition 34 of a replicated computation\n"
)
LOAD_PIECES = (
    "RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure: Error loading program 'jit_f': Attempting to "
    "reserve 29.33G at the bottom of memory. That was not possible. There are 30.10G free, 1.00M reserved, and "
    "29.30G reservable. If fragmentation is eliminated, the maximum reservable bytes would be 30.10G.\n"
)
LOAD_ALLOCATE = (
    "RESOURCE_EXHAUSTED: Error loading program 'jit_train_step': Attempting to allocate 1.82G. That was not "
    "possible. There are 1.54G free.\n"
)
OLD = (
    "RuntimeError: Resource exhausted: Could not allocate 67108864 bytes in memory 0x0x0_HBM0; 8388608 bytes "
    "allocatable, 9437184 bytes available\n"
)
OLD_PIECES = (
    "Could not allocate 67108864 bytes in memory 0x2x0_HBM1; 8388608 bytes allocatable, 94371840 bytes "
    "available; Current fragmentation: 91.1%\n"
)
TABLE = """RuntimeError: Resource exhausted: From /job:tpu_worker/replica:0/task:0:
Attempting to reserve 3.95G at the bottom of memory. That was not possible. There are 1.92G free, 0B reserved, \
and 1.92G reservable.;
HBM capacity 8.00G:
       Top-of-Memory reserved:  529.00M (     554,696,704 bytes)
          Currently allocated:    5.50G (   5,905,580,032 bytes)
          Program requirement:    3.95G (   4,241,280,205 bytes)
; attempting reservation for program memory
"""

CASES: dict[str, tuple[str, str, str | None, dict[str, int]]] = {
    "buffer": (BUFFER, "runtime-alloc", None, sizes(requested="129.50M", free="78.17M")),
    "coded": (CODED, "runtime-alloc", None, sizes(requested="556.00M", free="289.98M")),
    "pieces": (
        PIECES,
        "fragmentation",
        None,
        sizes(requested="31.06M", free="58.64M", largest_free="30.56M"),
    ),
    "pieces, new order": (
        PIECES_NEW,
        "fragmentation",
        None,
        sizes(requested="2.00G", free="3.25G", largest_free="1.75G"),
    ),
    "load": (
        LOAD,
        "program-load",
        "jit_train_step",
        sizes(requested="6.48G", free="5.91G", reserved="0B", reservable="5.91G"),
    ),
    "load, pieces": (
        LOAD_PIECES,
        "fragmentation",
        "jit_f",
        sizes(requested="29.33G", free="30.10G", reserved="1.00M", reservable="29.30G"),
    ),
    "load, allocate": (
        LOAD_ALLOCATE,
        "program-load",
        "jit_train_step",
        sizes(requested="1.82G", free="1.54G"),
    ),
    "old": (OLD, "runtime-alloc", None, {"requested": 67108864, "free": 9437184, "largest_free": 8388608}),
    "old, pieces": (
        OLD_PIECES,
        "fragmentation",
        None,
        {"requested": 67108864, "free": 94371840, "largest_free": 8388608},
    ),
    "table": (
        TABLE,
        "program-load",
        None,
        sizes(
            requested="3.95G",
            free="1.92G",
            reserved="0B",
            reservable="1.92G",
            capacity="8.00G",
            used="5.50G",
            program="3.95G",
        ),
    ),
}
