"""Single sentences of the driver, the compiler, NCCL and kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from damage import DAMAGE

from xlamem.readers.gpu_driver import read_gpu_driver
from xlamem.readers.gpu_kernel import read_gpu_kernel
from xlamem.readers.gpu_lines import read_gpu_lines
from xlamem.readers.lines import Lines, normalise
from xlamem.report import MemoryReport, Space

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
GIB = 1 << 30

Reader = Callable[[Lines, str], Iterator[MemoryReport]]


def read(reader: Reader, text: str) -> list[MemoryReport]:
    return list(reader(normalise(text), "x.log"))


def space(report: MemoryReport) -> Space:
    assert report.space is not None
    return report.space


def test_the_driver_by_hand() -> None:
    series, single, host, context = read(read_gpu_driver, (LOGS / "gpu_driver.log").read_text())
    assert (series.kind, series.severity, series.fits) == ("runtime-alloc", "warning", None)
    assert space(series).requested == 10 * GIB
    assert (series.source.line, series.source.end_line) == (1, 3)
    assert any(
        "3 requests in a row" in note and "8.10GiB (8697308672 bytes)" in note for note in series.notes
    )
    assert (space(single).requested, single.notes) == (553_648_128, ())
    assert (host.kind, space(host).name, space(host).requested) == ("host", "host", 2 * GIB)
    assert (host.severity, host.times) == ("warning", 2)
    assert (context.severity, context.fits, space(context).capacity) == ("error", False, 34_089_730_048)
    assert space(context).requested is None


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        ("failed to allocate 1.00G (1073741824 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n", GIB),
        ("failed to allocate 17.75G from device: hipError_t(1002)\n", 71 * GIB // 4),
        ("failed to allocate 154.06GiB (165425291480 bytes) from device: HIP_ERROR_OutOfMemory\n", 165425291480),
        ("failed to allocate 2.50GiB (2684354560 bytes) from device: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY\n",
         2684354560),
        ("failed to alloc 12524123136 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n", 12524123136),
        ("could not allocate pinned host memory of size: 11271710720\n", 11271710720),
    ],
)  # fmt: skip
def test_the_drivers_wordings(text: str, requested: int) -> None:
    (report,) = read(read_gpu_driver, text)
    assert space(report).requested == requested


def test_equal_refusals_are_counted() -> None:
    line = (
        "failed to allocate 343.34M (360015104 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
    )
    (report,) = read(read_gpu_driver, line * 4)
    assert (report.times, report.notes) == (4, ())


def test_an_absurd_total_is_none() -> None:
    text = "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY; total memory reported: "
    assert space(read(read_gpu_driver, text + "18446744071562067968\n")[0]).capacity is None
    assert space(read(read_gpu_driver, text + "3408973")[0]).capacity is None  # cut


def test_the_compilers_limit_is_a_warning() -> None:
    report, *_ = read(read_gpu_lines, (LOGS / "gpu_lines.log").read_text())
    assert (report.kind, report.severity, report.fits) == ("hbm", "warning", None)
    assert (space(report).used, space(report).capacity) == (1_374_526_449_600, 25_554_419_712)
    cut = read(
        read_gpu_lines, "The byte size of input/output arguments (13745264496) exceeds the base limit (2555"
    )
    assert (space(cut[0]).used, space(cut[0]).capacity) == (13_745_264_496, None)
    assert read(read_gpu_lines, "The byte size of input/output arguments (1374526") == []


def test_a_constant_and_nccl() -> None:
    _, constant, nccl, warning, calloc = read(read_gpu_lines, (LOGS / "gpu_lines.log").read_text())
    assert (constant.kind, constant.program, space(constant).requested) == ("runtime-alloc", None, 98_697_216)
    assert (nccl.source.format, nccl.program, space(nccl).requested) == ("nccl", "pjit_step", None)
    assert nccl.message.startswith("NCCL operation ncclCommInitRank(&comm, nranks, id, rank) failed:")
    assert warning.message == "NCCL WARN Cuda failure 'out of memory'"
    assert space(calloc).requested == 6_291_456


def test_nccl_that_failed_otherwise() -> None:
    assert read(read_gpu_lines, "NCCL operation ncclAllReduce() failed: unhandled system error\n") == []


def test_shared_memory_by_hand() -> None:
    xla, launch, triton = read(read_gpu_kernel, (LOGS / "gpu_lines.log").read_text())
    assert {r.kind for r in (xla, launch, triton)} == {"kernel-shared-memory"}
    assert space(xla).name == "shared"
    assert (space(xla).requested, space(xla).capacity) == (131_072, 101_376)
    assert (space(launch).requested, space(launch).capacity) == (None, None)
    assert launch.program == "pjit_fused"
    assert (space(triton).requested, space(triton).capacity) == (98_304, 49_152)
    assert any("Triton" in note for note in triton.notes)


@pytest.mark.parametrize(
    "text",
    [
        "Shared memory size limit exceeded: requested 73728, available: 65536\n",
        "Shared memory size limit exceeded: requested 73728, available 65536.\n",
        "Shared memory size limit exceeded:\nrequested 73728, available: 65536, context: [Fusion: f32[32,128]]\n",
        '{"message": "Shared memory size limit exceeded: requested 73728, available: 65536"}\n',
    ],
)
def test_shared_memory_wordings(text: str) -> None:
    (report,) = read(read_gpu_kernel, text)
    assert (space(report).requested, space(report).capacity) == (73_728, 65_536)


def test_a_cut_limit_is_none() -> None:
    (report,) = read(read_gpu_kernel, "Shared memory size limit exceeded: requested 73728, available: 655")
    assert (space(report).requested, space(report).capacity) == (73_728, None)
    (report,) = read(read_gpu_kernel, "Shared memory size limit exceeded.\n")
    assert space(report).requested is None


@pytest.mark.parametrize(
    "name", [n for n in DAMAGE if n not in ("wrapped at 80", "wrapped at 117", "one line")]
)
@pytest.mark.parametrize("reader", [read_gpu_driver, read_gpu_lines, read_gpu_kernel])
def test_what_users_tools_do_to_them(name: str, reader: Reader) -> None:
    for log in ("gpu_driver.log", "gpu_lines.log"):
        text = (LOGS / log).read_text()
        assert [(r.kind, r.spaces) for r in read(reader, DAMAGE[name](text) + "\n")] == [
            (r.kind, r.spaces) for r in read(reader, text)
        ]
