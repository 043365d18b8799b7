"""The GPU report: its sentence in every wording, the rows, the peak buffers, and which row failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage import DAMAGE

from xlamem.readers.gpu_oom import read_gpu_oom
from xlamem.readers.lines import normalise
from xlamem.report import MemoryReport, Space

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
GIB = 1 << 30
MIB = 1 << 20

#: Joining broken lines again is for whoever reads the whole input.
NOT_HERE = ("wrapped at 80", "wrapped at 117", "markdown")
ROCM = (LOGS / "gpu_rocm.log").read_text()


def read(text: str) -> list[MemoryReport]:
    return list(read_gpu_oom(normalise(text), "x.log"))


def one(text: str) -> MemoryReport:
    (report,) = read(text)
    return report


def space(report: MemoryReport) -> Space:
    assert report.space is not None
    return report.space


def test_the_log_and_the_exception_tell_it_twice() -> None:
    first, second = read((LOGS / "gpu_buffer_assignment.log").read_text())
    assert (first.source.line, first.source.end_line) == (4, 37)
    assert (second.source.line, second.source.end_line) == (43, 76)
    assert first.spaces == second.spaces
    assert [a.bytes for a in first.allocations] == [a.bytes for a in second.allocations]


def test_rows_and_buffers_by_hand() -> None:
    report = read((LOGS / "gpu_buffer_assignment.log").read_text())[0]
    assert (report.kind, report.severity, report.backend, report.fits) == ("hbm", "error", "gpu", False)
    assert report.message == "Out of memory while trying to allocate 2727680256 bytes."
    hbm = space(report)
    assert hbm.name == "hbm"
    assert (hbm.requested, hbm.fragmentation, hbm.constants) == (2727680256, 256, 12 * 1024)
    assert hbm.outputs == 16 * MIB
    assert hbm.arguments == (14724 * MIB + 50) // 100
    assert hbm.temps == (254 * GIB + 50) // 100
    assert hbm.total == (270 * GIB + 50) // 100
    assert hbm.fragmentation_ratio == 0.0
    assert hbm.capacity is hbm.used is hbm.free is None
    # f32[3000,1000,200], bf16[8,4096,5000], f32[50257,768], s32[]
    assert [int(a.bytes) for a in report.allocations] == [2_400_000_000, 327_680_000, 154_389_504, 4]
    assert {a.provenance for a in report.allocations} == {"computed"}
    assert all(a.unpadded_bytes == a.bytes and a.at_peak for a in report.allocations)
    assert [a.kind for a in report.allocations] == ["other", "other", "argument", "argument"]
    assert [a.opcode for a in report.allocations] == ["fusion", "custom-call", "parameter", "parameter"]
    assert report.allocations[0].op_name == (
        "jit(step)/jit(main)/transpose(jvp(model))/attend/dot_general[precision=None]"
    )
    assert (report.allocations[1].source_file, report.allocations[1].source_line) == ("/app/model.py", 42)
    assert [a.line for a in report.allocations] == [15, 22, 29, 34]
    assert report.partial
    assert not report.unparsed
    assert "Total fragmentation as printed: 96.00MiB (3.47%)." in report.notes


def test_which_row_failed() -> None:
    temps, _ = read((LOGS / "gpu_buffer_assignment.log").read_text())
    assert any("are the preallocated temp row: the program's temporaries" in note for note in temps.notes)
    results = one(ROCM)
    assert any("are the maybe_live_out row: the program's results" in note for note in results.notes)


def test_rocm_and_no_indentation_by_hand() -> None:
    report = one(ROCM)
    assert report.message == "Failed to allocate request for 20.00GiB (21474836480B) on device ordinal 3"
    assert "Device 3." in report.notes
    hbm = space(report)
    assert (hbm.requested, hbm.arguments, hbm.outputs) == (20 * GIB, 6 * GIB, 20 * GIB)
    assert (hbm.temps, hbm.constants) == (512 * MIB, 0)
    assert hbm.fragmentation is None
    # f32[20480,262144] and f32[20480,24576]
    assert [int(a.bytes) for a in report.allocations] == [20 * GIB, 2_013_265_920]


@pytest.mark.parametrize("name", [name for name in DAMAGE if name not in NOT_HERE])
def test_what_users_tools_do_to_it(name: str) -> None:
    report = one(DAMAGE[name](ROCM))
    assert report.kind == "hbm"
    assert space(report) == space(one(ROCM))
    assert [(a.bytes, a.shape, a.kind) for a in report.allocations] == [
        (a.bytes, a.shape, a.kind) for a in one(ROCM).allocations
    ]


def test_the_sentence_alone() -> None:
    report, other, host = read((LOGS / "gpu_bare.log").read_text())
    assert (report.kind, report.program) == ("runtime-alloc", "jit_train_step")
    assert space(report).requested == 12 * GIB + GIB // 2
    assert report.message == "Out of memory while trying to allocate 12.50GiB."
    assert (other.program, space(other).requested) == ("jit_init", 896 * MIB)
    assert "Allocator GPU_1_bfc, device 1." in other.notes
    assert (host.kind, space(host).name, space(host).requested) == ("host", "host", 70 * GIB + GIB // 4)


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        ("RuntimeError: Resource exhausted: Out of memory while trying to allocate 4398046511104 bytes.: while "
         "running replica 0 and partition 0 of a replicated computation.\n", 4 << 40),
        ("Execution of replica 0 failed: Resource exhausted: Out\nof memory while trying to allocate 5520758 "
         "bytes.\n", 5520758),
        ("Resource exhausted: Failed to allocate request for 528.00MiB (553648128B) on device ordinal 0\n", 553648128),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.75GiB\nwith allocator GPU_0_bfc on device "
         "0.\n[executable_name='jit_greater'] [tf-allocator-allocation-error='']\n", 7 * GIB // 4),
        ("ERROR: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 24 bytes.\n\nStacktrace:\n", 24),
    ],
)  # fmt: skip
def test_wordings(text: str, requested: int) -> None:
    report = one(text)
    assert space(report).requested == requested
    assert report.kind == "runtime-alloc"


def test_the_program_below_a_broken_line() -> None:
    report = one(
        "Out of memory while trying to allocate 1.75GiB\nwith allocator GPU_0_bfc on device 0.\n"
        "[executable_name='jit_greater']\n"
    )
    assert report.program == "jit_greater"


@pytest.mark.parametrize(
    "text",
    [
        "gcc: Out of memory while trying to allocate room for a block\n",
        "Failed to allocate request for camera 2\n",
        # A dump's own file: it describes a program, and nothing failed.
        "BufferAssignment:\nallocation 0: size 400, parameter 0\nBufferAssignment stats:\n"
        "             parameter allocation:        400B\n                 total allocation:       1200B\n",
        "Size: 3.40GiB\nShape: f32[8]\n",
    ],
)
def test_what_is_none(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    "cut", ["Out of memory while trying to allocate 27276802", "Out of memory while trying to"]
)
def test_a_cut_figure_is_none(cut: str) -> None:
    assert all(space(report).requested is None for report in read(cut))


def test_a_log_that_begins_after_the_head() -> None:
    text = ROCM[ROCM.index("BufferAssignment OOM") :]
    report = one(text)
    assert space(report).requested is None
    assert space(report).total == (2650 * GIB) // 100
    assert any("head of the report" in note for note in report.notes)


def test_a_log_that_ends_inside_a_buffer() -> None:
    report = one(ROCM[: ROCM.index("Entry Parameter")])
    assert report.truncated
    assert len(report.allocations) == 2
    assert report.allocations[1].provenance == "reported"


def test_a_size_that_the_shape_does_not_give_stands() -> None:
    report = one(ROCM.replace("Size: 1.88GiB", "Size: 1.50GiB"))
    assert report.allocations[1].bytes == 3 * GIB // 2
    assert report.allocations[1].provenance == "reported"
    assert report.allocations[1].unpadded_bytes is None


def test_one_buffer_is_what_failed() -> None:
    text = ROCM.replace("maybe_live_out allocation:   20.00GiB", "maybe_live_out allocation:   25.00GiB")
    assert "The requested bytes are buffer 1: f32[20480,262144]." in one(text).notes


def test_two_rows_alike() -> None:
    text = ROCM.replace("parameter allocation:    6.00GiB", "parameter allocation:   20.00GiB")
    assert any("maybe_live_out and the parameter row alike" in note for note in one(text).notes)


def test_two_programs_stay_two() -> None:
    other = ROCM.replace("21474836480", "21474836481").replace("26.50GiB", "30.50GiB")
    assert [space(report).total for report in read(ROCM + other)] == [
        (2650 * GIB) // 100,
        (3050 * GIB) // 100,
    ]


def test_a_tpu_report_is_not_this_one() -> None:
    assert read((LOGS / "0.0.7_v5e_mlp.log").read_text()) == []


def test_a_tpu_report_behind_it_is_left_alone() -> None:
    tpu = (LOGS / "0.0.7_v5e_mlp.log").read_text()
    assert len(one(ROCM + tpu).allocations) == 2


@pytest.mark.parametrize("words", ["Autotuning failed for HLO: ", "conv_algorithm_picker: "])
def test_autotuning_is_noted(words: str) -> None:
    report = one(words + "Out of memory while trying to allocate 12.50GiB.\n")
    assert any("autotuning" in note for note in report.notes)
    assert not one("Out of memory while trying to allocate 12.50GiB.\n").notes


def test_cuda_graphs_are_noted() -> None:
    report = one("Failed to instantiate CUDA graph: Out of memory while trying to allocate 12.50GiB.\n")
    assert any("CUDA graph" in note for note in report.notes)
