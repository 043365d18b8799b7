"""The allocators' own words: the BFC line and dump, the harmless line, cudaMallocAsync and its histogram."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage import DAMAGE

from xlamem.readers.bfc import read_bfc
from xlamem.readers.cuda_async import read_cuda_async
from xlamem.readers.lines import normalise
from xlamem.report import MemoryReport, Space

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
GIB = 1 << 30
DUMP = (LOGS / "gpu_bfc_dump.log").read_text()
ASYNC = (LOGS / "gpu_cuda_async.log").read_text()
BENIGN = (
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.50GiB with freed_by_count=0. The caller indicates "
    "that this is not a failure, but may mean that there could be performance gains if more memory were available.\n"
)


def bfc(text: str) -> list[MemoryReport]:
    return list(read_bfc(normalise(text), "x.log"))


def cuda_async(text: str) -> list[MemoryReport]:
    return list(read_cuda_async(normalise(text), "x.log"))


def space(report: MemoryReport) -> Space:
    assert report.space is not None
    return report.space


def test_a_dump_by_hand() -> None:
    (report,) = bfc(DUMP)
    assert (report.kind, report.severity, report.backend) == ("fragmentation", "error", "gpu")
    assert (report.source.format, report.source.line, report.source.end_line) == ("bfc-dump", 1, 33)
    assert report.message.startswith("Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.86GiB")
    hbm = space(report)
    assert (hbm.capacity, hbm.used, hbm.peak) == (10_000_000_000, 7_500_000_512, 9_500_000_256)
    assert (hbm.reserved, hbm.reservable) == (10_000_000_000, 0)
    assert hbm.requested == (186 * GIB + 50) // 100
    # The largest of the chunks "Free  at": these allocators print LargestFreeBlock: 0 without looking.
    assert hbm.largest_free == 1_499_999_744
    assert [(int(a.bytes), a.label) for a in report.allocations] == [
        (512, "2 chunks of 256 bytes"),
        (1_500_000_000, "1 chunk of 1500000000 bytes"),
        (6_000_000_000, "3 chunks of 2000000000 bytes"),
    ]
    assert not report.partial
    assert "The allocator rounds it up to 2000000000 bytes." in report.notes
    assert any("no free piece was large enough" in note for note in report.notes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("of size 1499999744", "of size 2000000000"),  # a piece that is large enough
        ("(rounded to 2000000000)", "(rounded to 3000000000)"),  # more than is free in all
        ("of size 1499999744", "of size 100"),  # too little free in all
    ],
)
def test_what_is_no_fragmentation(old: str, new: str) -> None:
    (report,) = bfc(DUMP.replace(old, new))
    assert report.kind == "runtime-alloc"


def test_largest_free_block_where_an_allocator_knows_it() -> None:
    text = "\n".join(line for line in DUMP.splitlines() if " at 7f" not in line) + "\n"
    assert bfc(text)[0].kind == "runtime-alloc"
    known = text.replace("LargestFreeBlock:                    0", "LargestFreeBlock:           1600000000")
    (report,) = bfc(known)
    assert (report.kind, space(report).largest_free) == ("fragmentation", 1_600_000_000)


def test_the_device_did_not_give_what_was_allowed() -> None:
    (report,) = bfc(DUMP.replace("available bytes: 0", "available bytes: 2500000000"))
    assert space(report).reservable == 2_500_000_000
    assert any("something else holds that memory" in note for note in report.notes)


@pytest.mark.parametrize(
    "name", [n for n in DAMAGE if n not in ("wrapped at 80", "wrapped at 117", "markdown")]
)
def test_what_users_tools_do_to_a_dump(name: str) -> None:
    (report,) = bfc(DAMAGE[name](DUMP))
    assert (report.kind, space(report)) == ("fragmentation", space(bfc(DUMP)[0]))
    assert [(a.bytes, a.label) for a in report.allocations] == [
        (a.bytes, a.label) for a in bfc(DUMP)[0].allocations
    ]


def test_sizes_with_units_by_hand() -> None:
    (report,) = bfc((LOGS / "gpu_bfc_units.log").read_text())
    hbm = space(report)
    assert report.kind == "runtime-alloc"
    assert (hbm.capacity, hbm.used, hbm.peak) == (30 * GIB + GIB // 4, 27 * GIB, 27 * GIB + GIB // 2)
    assert (hbm.requested, hbm.reservable) == (13 * GIB + GIB // 2, 153)
    assert [(a.bytes, a.label, a.provenance) for a in report.allocations] == [
        (27 * GIB, "2 chunks of 13.50GiB", "reported")
    ]


def test_the_oldest_form_dumps_first() -> None:
    (report,) = bfc((LOGS / "gpu_bfc_2017.log").read_text())
    hbm = space(report)
    assert report.message == "Ran out of memory trying to allocate 119.63MiB"
    assert (hbm.capacity, hbm.used, hbm.peak) == (1_490_198_528, 1_393_091_584, 1_477_423_360)
    assert hbm.requested == (11963 * (1 << 20) + 50) // 100
    assert [int(a.bytes) for a in report.allocations] == [35 * 256, 1_393_082_624]


@pytest.mark.parametrize(
    "line",
    [
        "InUse at 7f41b2000000 of size 1280 next 1",
        "InUse at 0x2303b60000 next 1 of size 1280",
        "InUse at 7f41b2000000 of size 1280 by op conv2d action_count 12 step 3 next 1",
        "Chunk at 0x10208000000 of size 1280",
    ],
)
def test_chunks_without_their_summary(line: str) -> None:
    (report,) = bfc(
        f"BFCAllocator dump for GPU_0_bfc\n{line}\n{line}\nFree  at 7f41b2000100 of size 99 next 2\n"
    )
    assert [(int(a.bytes), a.label) for a in report.allocations] == [(2560, "2 chunks of 1280 bytes")]
    assert report.partial
    assert space(report).largest_free is None  # who knows what was cut


def test_the_line_alone() -> None:
    line = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB (rounded to 1610612992)requested by op "
    for text in (
        line + "\n",
        line + "model/conv2d_17/Relu\n",
        line.replace("requested", " requested") + "\nx\n",
    ):
        (report,) = bfc(text)
        assert (report.kind, report.severity, report.fits) == ("runtime-alloc", "error", False)
        assert space(report).requested == 3 * GIB // 2
        assert "The allocator rounds it up to 1610612992 bytes." in report.notes
    assert "Requested by op model/conv2d_17/Relu." in bfc(line + "model/conv2d_17/Relu\n")[0].notes


@pytest.mark.parametrize(
    "text",
    [
        BENIGN,
        BENIGN.replace("but may", "but this may"),
        BENIGN.replace(" with freed_by_count=0", ""),
        BENIGN.replace("Allocator (GPU_0_bfc) ran", "Ran").replace(" with freed_by_count=0", ""),
        BENIGN.replace(". The", ".\nThe"),
        BENIGN[: BENIGN.index("The caller")],
    ],
)
def test_what_is_no_failure(text: str) -> None:
    (report,) = bfc(text)
    assert (report.kind, report.severity, report.fits) == ("benign", "info", None)
    assert space(report).requested == 3 * GIB + GIB // 2


def test_what_is_no_failure_comes_once() -> None:
    reports = bfc(BENIGN * 3 + BENIGN.replace("3.50", "2.25") * 2)
    assert [(r.kind, r.times) for r in reports] == [("benign", 3), ("benign", 2)]


def test_a_line_cut_before_it_says_which() -> None:
    (report,) = bfc(BENIGN[: BENIGN.index(" with freed")])
    assert (report.severity, report.fits, report.truncated) == ("warning", None, True)


def test_the_pinned_host_allocator() -> None:
    (report,) = bfc(
        "Allocator (xla_gpu_host_bfc) ran out of memory trying to allocate 14.00GiB (rounded to 15032385536)"
        "requested by op\n"
    )
    assert (report.kind, report.backend, space(report).name) == ("host", "gpu", "host")


def test_mixed_dumps_are_noticed() -> None:
    (report,) = bfc(DUMP.replace("3 Chunks of size 2000000000 totalling 5.59GiB", "something else"))
    assert report.partial
    assert any("do not add up" in note for note in report.notes)


def test_two_failures_stay_two() -> None:
    first, second = bfc(DUMP + DUMP.replace("GPU_0_bfc", "GPU_1_bfc"))
    assert first.spaces == second.spaces
    assert first.notes[0] == "Allocator GPU_0_bfc."
    assert second.notes[0] == "Allocator GPU_1_bfc."


def test_a_dump_and_the_harmless_line_stay_apart() -> None:
    assert [r.kind for r in bfc(BENIGN + DUMP + BENIGN)] == ["fragmentation", "benign"]


def test_stats_of_something_else() -> None:
    assert bfc("Stats:\nTotal time: 3\nLimit: 5 requests\n") == []


@pytest.mark.parametrize("end", ["Limit:                     1000", "InUse:                      75000005"])
def test_a_figure_at_the_end_may_be_cut(end: str) -> None:
    text = DUMP[: DUMP.index(end) + len(end)]
    (report,) = bfc(text)
    assert space(report).capacity in (None, 10_000_000_000)
    assert space(report).used in (None, (698 * GIB + 50) // 100)


def test_cuda_async_by_hand() -> None:
    (report,) = cuda_async(ASYNC)
    assert (report.kind, report.severity, report.backend) == ("runtime-alloc", "error", "gpu")
    assert (report.source.line, report.source.end_line) == (1, 14)
    hbm = space(report)
    assert (hbm.requested, hbm.free, hbm.capacity) == (122_519_544_646, 22_635_544_576, 85_095_874_560)
    assert (hbm.used, hbm.peak, hbm.largest_free) == (59_743_741_760, 59_743_741_760, None)
    assert [(int(a.bytes), a.label) for a in report.allocations] == [
        (59_743_666_176, "1 allocation of 59743666176 bytes"),
        (65_536, "1 allocation of 65536 bytes"),
        (10_048, "157 allocations of 64 bytes"),
    ]
    assert bfc(ASYNC) == []


@pytest.mark.parametrize(
    "name", [n for n in DAMAGE if n not in ("wrapped at 80", "wrapped at 117", "markdown")]
)
def test_what_users_tools_do_to_cuda_async(name: str) -> None:
    (report,) = cuda_async(DAMAGE[name](ASYNC))
    assert space(report) == space(cuda_async(ASYNC)[0])
    assert [a.bytes for a in report.allocations] == [a.bytes for a in cuda_async(ASYNC)[0].allocations]


def test_the_older_cuda_async_line() -> None:
    (report,) = cuda_async(
        "gpu_async_0 cuMemAllocAsync failed to allocate 4096: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n"
        " Free memory/Total memory: 22/85095874560\n"
    )
    hbm = space(report)
    assert (hbm.requested, hbm.free, hbm.capacity, hbm.used) == (4096, 22, 85_095_874_560, None)


def test_shuffled_histograms_are_not_guessed_at() -> None:
    head, tail = ASYNC.split("E1103 18:23:55.103249", 1)
    pairs = ("E1103 18:23:55.103249" + tail).splitlines()[:3]
    text = head + "\n".join([pairs[0], pairs[0], pairs[1], pairs[1], pairs[2], pairs[2]]) + "\n"
    (report,) = cuda_async(text)
    assert not report.allocations
    assert any("shuffled" in note for note in report.notes)


def test_one_allocator_a_device() -> None:
    reports = cuda_async(ASYNC + ASYNC.replace("gpu_async_1", "gpu_async_2"))
    assert [r.notes[0] for r in reports] == ["Allocator gpu_async_1.", "Allocator gpu_async_2."]
