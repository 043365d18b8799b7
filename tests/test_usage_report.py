"""Memory usage reports of both ages, as files and inside logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlamem.readers import usage_report
from xlamem.readers.assignment_report import Facts
from xlamem.report import Source

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"

LOG = """I0000 something happens
Memory usage report:

Memory Space: default (color=0)
Total bytes: 33554473472 (31.25GiB)
  cumulative_size;       size;       offset; used_by_n_values; shapes_list
  ------------------------------------------------------------
   12.50GiB( 67%);   12.50GiB;            0;                2; 2×f32[409600,1,64,64]
   18.75GiB(100%);    6.25GiB;  13421772800;                3; bf16[8,3], f32[5], pred[]
   The rest 119 values are less than 5% of the total.

  cumulative_size;       size;       offset; used_by_n_values; shapes_list
  ------------------------------------------------------------
       512B(100%);       512B;            0;                1; (f32[3], u32[])


Memory Space: vmem (color=1)
Total bytes: 4608 (4.5KiB)
  cumulative_size;       size;       offset; used_by_n_values; shapes_list
  ------------------------------------------------------------
      4.5KiB(100%);      4.5KiB;            0;                1; s8[4608]

I0000 and the log goes on
  1. Size: 12.50G
"""


def test_inside_a_log() -> None:
    found = usage_report.parse(LOG)
    assert found is not None
    assert found.totals == {"hbm": 33554473472, "vmem": 4608}
    assert (found.start, found.end) == (4, 21)
    assert found.omitted == 119
    assert [(s.space, int(s.bytes), s.offset, s.values, s.table) for s in found.slots] == [
        ("hbm", 12.5 * 2**30, 0, 2, 0),
        ("hbm", 6.25 * 2**30, 13421772800, 3, 0),
        ("hbm", 512, 0, 1, 1),
        ("vmem", 4608, 0, 1, 2),
    ]
    assert [str(shape) for shape in found.slots[1].shapes] == ["bf16[8,3]", "f32[5]", "pred[]"]
    assert [str(shape) for shape in found.slots[2].shapes] == ["(f32[3], u32[])"]
    # "12.50GiB" is known to half of its last digit.
    assert found.slots[0].bytes.slack == 5368710


def test_two_reports_are_two() -> None:
    again = usage_report.parse(LOG + "\n".join(LOG.splitlines()[1:]))
    assert again is not None
    assert len(again.slots) == 4


def test_a_cut_row_is_kept_as_not_understood() -> None:
    found = usage_report.parse(LOG[: LOG.index("3421772800")])
    assert found is not None
    assert len(found.slots) == 1
    assert [u.text for u in found.unparsed] == ["18.75GiB(100%);    6.25GiB;  1"]


@pytest.mark.parametrize(
    ("folder", "totals"),
    [
        ("tpu_fit", {"hbm": 5403568640, "vmem": 11010048, "smem": 12, "color_6": 1024}),
        ("tpu_oom", {"hbm": 38863540736, "vmem": 12296192, "smem": 8}),
        ("tpu_2024", {"hbm": 21474853888}),
        ("padded", {"hbm": 1073741824, "vmem": 0}),
    ],
)
def test_real_files(folder: str, totals: dict[str, int]) -> None:
    (path,) = (DUMPS / folder).glob("*-memory-usage-report.txt")
    assert usage_report.sniff(path.name, path.read_bytes()[:4096])
    found = usage_report.parse(path.read_text())
    assert found is not None
    assert found.totals == totals
    assert not found.unparsed
    assert found.old == (folder == "tpu_2024")


def test_the_form_of_2024_tells_kinds() -> None:
    (path,) = (DUMPS / "tpu_2024").glob("*-memory-usage-report.txt")
    found = usage_report.parse(path.read_text())
    assert found is not None
    kinds = [slot.kind for slot in found.slots]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "argument": 10, "thread-local": 30, "output": 1, "constant": 1, "temp": 3,
    }  # fmt: skip
    assert {slot.space for slot in found.slots} == {"hbm", "color_6", "vmem"}


def test_as_a_report() -> None:
    found = usage_report.parse(LOG)
    assert found is not None
    report = usage_report.to_report(found, Facts(Source("x", "memory-usage-report"), capacity=16 * 2**30))
    assert (report.fits, report.kind) == (False, "hbm")
    assert report.space is not None
    assert report.space.over == 33554473472 - 16 * 2**30
    assert all(a.unpadded_bytes is None for a in report.allocations)
    assert any("padding is not known" in note for note in report.notes)
    assert report.partial


def test_nothing_there() -> None:
    assert usage_report.parse("Total bytes of something else: 12\n") is None
    # The list of values that libtpu dumps beside it starts alike.
    assert not usage_report.sniff("x", b"\nTotal bytes used: 38875836936 (36.21GiB)\n\nUsed values:\n")
