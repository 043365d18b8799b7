"""The long TPU report. Every expected figure was read off the logs by eye."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage import DAMAGE, REWRAPPED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xlamem.errors import NotAReportError
from xlamem.readers import read, read_all
from xlamem.report import MemoryReport
from xlamem.units import parse_size

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
UNET = LOGS / "unet_kernel_v2.log"
LONG = LOGS / "0.0.42.1_v5e_batchmat_E1000_long.log"


def figures(report: MemoryReport, space: str = "hbm") -> dict[str, int | float]:
    found = next(s for s in report.spaces if s.name == space)
    return {name: value for name, value in found.figures().items() if value is not None}


def items(report: MemoryReport) -> list[tuple[object, ...]]:
    return [
        (a.kind, int(a.bytes), a.unpadded_bytes, str(a.shape), a.opcode, a.name, a.op_name, a.source_line)
        for a in report.allocations
    ]


def test_a_report_of_2020_on_a_v2() -> None:
    report = read(UNET)
    assert (report.kind, report.severity, report.fits) == ("hbm", "error", False)
    assert report.target is not None
    assert (report.target.name, report.target.inferred) == ("v2", True)
    assert report.source.line == 58
    assert report.unparsed == ()
    assert report.message.startswith("Ran out of memory in memory space hbm. Used 25.99G of 7.48G hbm.")
    wanted = {
        "used": "25.99G",
        "capacity": "7.48G",
        "over": "18.50G",
        "total": "26.50G",
        "reserved": "529.00M",
        "program": "25.99G",
        "program_reserved": "4.0K",
        "constants": "36.0K",
        "temps": "25.99G",
        "unpadded": "19.34G",
        "padded": "25.98G",
        "fragmentation": "10.31M",
    }
    assert figures(report) == {k: parse_size(v) for k, v in wanted.items()} | {
        "utilization": 74.4,
        "fragmentation_ratio": 0.0,
    }
    assert len(report.allocations) == 12
    first, second, third = report.allocations[:3]
    # 409600 * 2 * 64 * 64 * 4 bytes; axis 1 is padded from 1 to 2.
    assert (first.bytes, first.unpadded_bytes, first.provenance) == (13421772800, 6710886400, "computed")
    assert (first.name, first.opcode, first.kind) == ("convolution.5785", "convolution", "temp")
    assert [str(o.shape) for o in first.operands] == [
        "bf16[409600,1,64,64]{0,1,3,2:T(4,128)(2,1)}",
        "bf16[3,3,1,1]{3,2,1,0:T(4,128)(2,1)}",
    ]
    assert [a.opcode for a in (second, third)] == ["copy", "copy"]
    assert [str(a.operands[0].shape) for a in (second, third)] == [
        "f32[409600,1,64,64]{0,1,3,2:T(2,128)}"
    ] * 2
    assert report.allocations[8].bytes == 9216  # printed as 9.0K
    assert report.allocations[9].label == "profiler"
    assert report.allocations[9].unpadded_bytes is None


def test_a_report_of_today_with_its_arguments() -> None:
    report = read(LONG)
    assert report.target is None  # a limit set by hand: 5.03G is no chip's
    assert figures(report)["outputs"] == parse_size("10.00M")
    assert len(report.allocations) == 23
    assert [a.kind for a in report.allocations[-3:]] == ["argument", "argument", "output"]
    fourth = report.allocations[3]
    assert (fourth.op_name, fourth.bytes) == ("jit(loss)/jvp()/broadcast_in_dim", 6 * 65536 * 8 * 128)
    # A tuple's item is its table of pointers here, not the sum of its parts.
    assert report.allocations[10].bytes == 512
    assert report.allocations[10].shape is not None
    assert len(report.allocations[10].shape.elements) == 14


def test_source_files_and_lines() -> None:
    first = read(LOGS / "0.0.23_v5e_mlp.log").allocations[0]
    assert (first.op_name, first.source_file, first.source_line) == (
        "jit(loss)/jvp()/dot_general",
        "/home/user/project/progs.py",
        23,
    )


def test_memory_on_the_chip() -> None:
    report = read(LOGS / "0.0.42.1_v5e_pallas_vmem.log")
    assert report.kind == "onchip"
    assert figures(report, "vmem") == {
        "used": 2**28,
        "capacity": 2**27,
        "over": 2**27,
        "program": 2**28,
        "scoped": 2**28,
    }
    assert [a.kind for a in report.allocations] == ["scoped", "scoped"]
    assert report.allocations[0].tag is not None
    assert report.allocations[0].tag.startswith(
        "input window allocation for operator input 0. The window shape"
    )


def test_a_compile_that_succeeded_prints_the_same_blocks() -> None:
    report = read(LOGS / "0.0.42.1_v5e_batchmat_fit_stderr0.log")
    assert (report.kind, report.severity, report.fits) == ("success", "info", True)
    assert report.program == "jit_loss"
    assert {s.name for s in report.spaces} == {"hbm", "vmem", "smem", "sflag", "host"}
    # 5.01G of program, 20.00M of arguments, 10.00M of outputs that share nothing with them
    expected = parse_size("5.01G") + parse_size("20.00M") + parse_size("10.00M")
    assert report.space is not None
    assert report.space.used == expected
    assert figures(report, "smem")["used"] == parse_size("2.1K")


@pytest.mark.parametrize("name", [*DAMAGE, *REWRAPPED])
@pytest.mark.parametrize("log", [UNET, LONG, LOGS / "0.0.23_v5e_mlp.log"], ids=lambda p: p.stem)
def test_what_users_tools_do_to_a_log_changes_nothing(log: Path, name: str) -> None:
    text = log.read_text()
    expected, found = read_all(text), read_all((DAMAGE | REWRAPPED)[name](text) + "\n")
    assert len(found) == 1
    assert figures(found[0]) == figures(expected[0])
    assert items(found[0]) == items(expected[0])
    assert found[0].unparsed == ()


def test_two_reports_stay_two_and_one_told_twice_is_one() -> None:
    unet, long = UNET.read_text(), LONG.read_text()
    assert len(read_all(unet + long)) == 2
    assert len(read_all(unet + unet)) == 1
    assert read_all(unet + long + unet)[0].times == 2
    # The log of the compiler was cut, the exception is whole.
    assert [len(r.allocations) for r in read_all(unet[: unet.index("  4. Size")] + unet)] == [12]


def test_the_report_that_stopped_the_run_comes_first() -> None:
    reports = read_all(UNET.read_text() + LONG.read_text())
    assert [len(r.allocations) for r in reports] == [23, 12]


def test_2019_prints_neither_padded_nor_tiles() -> None:
    text = """
Compilation failure: Ran out of memory in memory space hbm. Used 17.60G of 16.00G hbm. Exceeded hbm capacity by 1.60G.

Total hbm usage >= 17.60G:
    reserved        528.00M
    program          17.08G
    arguments       unknown size

Output size unknown.

Program hbm requirement 17.08G:
    reserved          12.0K
    global           980.0K
    scoped            5.41M
    HLO temp         17.08G (92.8% utilization, 0.3% fragmentation (53.61M))

  Largest program allocations in hbm:

  1. Size: 512.00M
     Operator: op_type="OneHot" op_name="one_hot"
     Shape: f32[4,128,128,9,18]{4,3,0,2,1}
     Unpadded size: 40.50M
     Extra memory due to padding: 471.50M (12.6x expansion)
     XLA label: %fusion.1 = f32[4,128,128,9,18]{4,3,0,2,1} fusion(s32[4,128,128,9]{3,0,2,1} %copy.1), kind=kLoop
     Allocation type: HLO temp
     ==========================
"""
    report = read(text)
    found = figures(report)
    assert (found["used"], found["utilization"]) == (parse_size("17.60G"), 92.8)
    assert "padded" not in found
    item = report.allocations[0]
    # With T(8,128): 4 * 128 * 128 * 16 * 128 * 4 bytes.
    assert (item.bytes, item.shape_assumed, str(item.shape)) == (
        536870912,
        True,
        "f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}",
    )


def test_an_unnumbered_list_with_labels_only() -> None:
    text = """
Compilation failure: Ran out of memory in memory space vmem. It should not be possible to run out of vmem - please file a bug against XLA.

Largest program allocations in vmem:

  XLA label: register allocator spill slots
  Allocation type: scoped

  XLA label: %fusion.7 = (bf16[], f32[256]{0}) fusion(f32[256]{0}, f32[256]{0}, ...(+13)), kind=kOutput, calls=%f.7
  Allocation type: scoped

"""
    report = read(text)
    assert (report.kind, report.unparsed) == ("onchip", ())
    assert [a.label and a.label[:10] for a in report.allocations] == ["register a", "%fusion.7 "]
    assert [a.kind for a in report.allocations] == ["scoped", "scoped"]


def test_markdown_with_joined_lines() -> None:
    text = r"""Ran out of memory in memory space hbm. **Used 19.46G of 15.48G hbm. Exceeded hbm capacity by 3.98G**.
Total hbm usage >= 19.98G:
    reserved 530.00M
    program 19.46G
    arguments 0BOutput size 0B; shares 0B with arguments.Program hbm requirement 19.46G:
    HLO temp 19.46G (33.1% utilization: **Unpadded (6.40G) Padded (19.32G)**, 0.7% fragmentation (147.91M)) **Largest program allocations in hbm**:
  1\. Size: 14.00G
     Shape: s32[29360128,10]{1,0:T(8,128)}
     Unpadded size: 1.09G
     Allocation type: HLO temp
     ========================== 2\. Size: 2.62G
     Shape: f32[128,256,896,18]{0,3,2,1:T(8,128)}
"""
    report = read(text)
    assert figures(report)["outputs"] == 0
    assert figures(report)["padded"] == parse_size("19.32G")
    assert [a.bytes for a in report.allocations] == [29360128 * 128 * 4, 128 * 24 * 896 * 256 * 4]
    assert report.target is not None
    assert report.target.name == "v3"


def test_a_line_that_nobody_understood_is_kept() -> None:
    text = UNET.read_text().replace(
        "     Unpadded size: 320.00M\n", "     Unpadded size: 320.00M\n     Colour: 3 blue\n"
    )
    report = read(text)
    assert [(u.line, u.text) for u in report.unparsed] == [(101, "Colour: 3 blue")]
    assert len(report.allocations) == 12


def test_a_report_without_its_head() -> None:
    text = UNET.read_text()
    report = read(text[text.index("  Largest program") :])
    assert (report.kind, report.fits, len(report.allocations)) == ("hbm", False, 12)
    assert report.space is not None
    assert report.space.used is None
    assert "head of the report" in report.notes[0]


def test_a_report_that_breaks_off_says_so() -> None:
    text = UNET.read_text()
    report = read(text[: text.index("     Unpadded size: 320.00M")])
    assert report.truncated
    assert len(report.allocations) == 4


SIZES = {
    int(parse_size(word.rstrip(".,;:)").lstrip("(")))
    for word in UNET.read_text().split()
    if word.rstrip(".,;:)").lstrip("(")[-1:] in ("G", "M", "K", "B")
    and word.rstrip(".,;:)").lstrip("(")[0].isdigit()
}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    start=st.integers(0, 8000),
    stop=st.integers(0, 8000),
    junk=st.text(max_size=30),
    at=st.integers(0, 8000),
)
def test_a_damaged_log_never_fails_and_never_invents_a_figure(
    start: int, stop: int, junk: str, at: int
) -> None:
    text = UNET.read_text()
    text = text[:at] + junk + text[at:]
    text = text[start : max(start, stop)]
    try:
        reports = read_all(text + "\n")
    except NotAReportError:
        return
    for report in reports:
        for space in report.spaces:
            for name, value in space.figures().items():
                if (
                    isinstance(value, int)
                    and value
                    and not any(c.isdigit() or c in "KMGTPEiB." for c in junk)
                ):
                    assert int(value) in SIZES, name


def test_hosts_that_write_over_each_other_are_heard_one_by_one() -> None:
    unet, long = UNET.read_text().splitlines(), LONG.read_text().splitlines()
    lines = []
    for at in range(max(len(unet), len(long))):
        lines += [f"(W pid={pid}) {text[at]}" for pid, text in ((1, unet), (2, long)) if at < len(text)]
    found = read_all("\n".join(lines))
    assert sorted(len(r.allocations) for r in found) == [12, 23]
    assert all(r.unparsed == () for r in found)
    same = read_all("\n".join(f"[rank {rank}]: {line}" for line in unet for rank in range(8)))
    assert [(len(r.allocations), len(r.hosts)) for r in same] == [(12, 8)]


def test_totals_alone_are_no_success() -> None:
    text = UNET.read_text()
    report = read(text[text.index("Total hbm") : text.index("  1. Size")])
    assert (report.kind, report.fits, report.severity) == ("other", None, "warning")
    assert "whether the program fits is not said" in report.notes[0]


@pytest.mark.parametrize(
    "text",
    ['if "Ran out of memory in memory space hbm." in str(e):\n    pass\n', "Allocation type: spot\nTag: a\n"],
)
def test_somebodys_code_is_no_report(text: str) -> None:
    with pytest.raises(NotAReportError):
        read(text)
