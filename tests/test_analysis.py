"""Padding, checks, verdict and fit. The seed's figures are those its thread's experts worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from xlamem.analysis import checks, fit
from xlamem.analysis.groups import equal_tensors, layout_copies
from xlamem.analysis.headline import headline
from xlamem.analysis.padding import needed_without_padding, total_padding
from xlamem.explanation import explain
from xlamem.readers import read
from xlamem.report import MemoryReport
from xlamem.units import format_size

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"


@pytest.fixture(scope="module")
def unet() -> MemoryReport:
    return read(LOGS / "unet_kernel_v2.log")


def test_padding_is_what_the_report_says(unet: MemoryReport) -> None:
    padding = total_padding(unet)
    assert padding is not None
    # 25.98G padded - 19.34G unpadded
    assert (format_size(padding.bytes), padding.provenance, padding.lower_bound) == (
        "6.64GiB",
        "reported",
        False,
    )
    need = needed_without_padding(unet)
    assert need is not None
    assert format_size(need.bytes) == "19.34GiB"


def test_padding_from_the_utilization_alone_is_an_estimate(unet: MemoryReport) -> None:
    assert unet.space is not None
    old = replace(unet, spaces=(replace(unet.space, padded=None, unpadded=None),))
    padding = total_padding(old)
    assert padding is not None
    assert padding.provenance == "estimated"
    # 25.6 % of 25.98 GiB
    assert abs(padding.bytes - 0.256 * 25.98 * 2**30) < 0.01 * 2**30


def test_padding_from_the_items_alone_is_a_lower_bound(unet: MemoryReport) -> None:
    assert unet.space is not None
    cut = replace(unet, spaces=(replace(unet.space, padded=None, unpadded=None, utilization=None),))
    padding = total_padding(cut)
    assert padding is not None
    # 6.25 GiB + 320 MiB + 80 MiB + 96 KiB, and the two constants' 9198 and 4088 bytes
    expected = (6 * 1024 + 256 + 320 + 80) * 2**20 + 96 * 1024 + 9198 + 4088
    assert (padding.bytes, padding.lower_bound) == (expected, True)


def test_the_headline_is_the_answer(unet: MemoryReport) -> None:
    assert headline(unet) == "Out of HBM on TPU v2 (inferred): 25.99GiB used of 7.48GiB, over by 18.50GiB."


def test_the_verdict_of_the_seed(unet: MemoryReport) -> None:
    explanation = explain(unet)
    found = {f.name: f for f in explanation.findings}
    assert "3 buffers of f32[409600,1,64,64] take 25.00GiB" in found["equal-tensors"].text
    assert "Items 2 (6.25GiB), 3 (6.25GiB) and 5" in found["layout-copies"].text
    assert "{0,1,3,2:T(2,128)}" in found["layout-copies"].text
    assert "12.50GiB" in found["giant-tensor"].text
    assert "19.34GiB would still be needed, 2.6 times the 7.48GiB" in found["padding"].text
    assert "2.6 times" in explanation.verdict


def test_padding_bound() -> None:
    explanation = explain(read(LOGS / "0.0.7_v5e_padded_batchmat_22G.log"))
    assert explanation.verdict.startswith("Padding-bound: ")
    assert explanation.findings[0].name == "padding"


def test_arguments_that_do_not_fit() -> None:
    explanation = explain(read(LOGS / "0.0.7_v5e_args_20G.log"))
    assert explanation.verdict == "Mainly the arguments."
    assert "20.00GiB, more than all the memory there is" in explanation.findings[0].text


def test_overlays_decide_at_the_edge() -> None:
    names = {f.name for f in explain(read(LOGS / "0.0.50.1_v5e_args_edge_overlays.log")).findings}
    assert {"arguments", "outputs", "overlays"} <= names


def test_arguments_that_were_not_placed_are_not_called_none() -> None:
    findings = explain(read(LOGS / "0.0.37_v5e_mlp.log")).findings
    assert "arguments-unplaced" in {f.name for f in findings}
    assert "18 of 20 named buffers" in next(f.text for f in findings if f.name == "rematerialized")


def test_where_the_seed_would_fit(unet: MemoryReport) -> None:
    rows = {f.target: f for f in fit.fits(unet)}
    assert not rows["v3"].fits
    assert rows["v5p"].fits
    assert rows["v5p"].provenance == "reported"
    assert rows["v100-32g"].fits
    assert not rows["v100-16g"].fits
    assert rows["v100-16g"].provenance == "estimated"
    assert format_size(rows["v100-16g"].needed) == "19.34GiB"


@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log")), ids=lambda p: p.stem)
def test_the_figures_of_every_real_log_agree(log: Path) -> None:
    assert [c.text for c in checks.run(read(log)) if not c.ok] == []


def test_a_check_that_fails_says_both_figures(unet: MemoryReport) -> None:
    assert unet.space is not None
    wrong = replace(unet, spaces=(replace(unet.space, padded=unet.space.unpadded),))
    failed = {c.name: c.text for c in checks.run(wrong) if not c.ok}
    assert "19.34GiB + 10.31MiB = 19.35GiB, not 25.99GiB" in failed["hbm-temps"]
    assert "is 100.0%, printed as 74.4%" in failed["hbm-utilization"]


def test_a_size_that_the_shape_does_not_take_is_shown() -> None:
    text = (LOGS / "unet_kernel_v2.log").read_text().replace("3. Size: 6.25G", "3. Size: 7.25G")
    report = read(text)
    assert report.allocations[2].provenance == "reported"
    failed = [c for c in checks.run(report) if c.name == "item-size"]
    assert len(failed) == 1
    assert "item 3: printed as 7.25GiB, yet f32[409600,1,64,64]{0,3,2,1} takes 6.25GiB" in failed[0].text


def test_groups_ignore_layouts(unet: MemoryReport) -> None:
    first = equal_tensors(unet.allocations)[0]
    assert (first.text, len(first.allocations), first.bytes) == ("f32[409600,1,64,64]", 3, 25 * 2**30)


def test_layout_copies_without_types_are_found_by_name() -> None:
    text = """
Ran out of memory in memory space hbm. Used 24.00G of 15.75G hbm. Exceeded hbm capacity by 8.25G.
  Largest program allocations in hbm:
  1. Size: 16.00G
     Shape: f32[8388608,4]{1,0:T(8,128)}
     Unpadded size: 128.00M
     XLA label: fusion.1 = fusion(p.1), kind=kLoop, calls=f.1
     Allocation type: HLO temp
     ==========================
  2. Size: 128.00M
     Shape: f32[8388608,4]{0,1:T(4,128)}
     XLA label: copy.2 = copy(fusion.1)
     Allocation type: HLO temp
     ==========================
"""
    copies = layout_copies(read(text).allocations)
    assert [(c.position, str(c.before), str(c.after)) for c in copies] == [
        (1, "f32[8388608,4]{1,0:T(8,128)}", "f32[8388608,4]{0,1:T(4,128)}")
    ]


def test_a_kernel_without_its_figure_gets_a_whole_sentence() -> None:
    from xlamem.analysis.headline import _kernel
    from xlamem.report import Space

    assert _kernel(Space("shared")) == "A kernel asks for more shared memory than a block can have"
    asked = Space("shared", requested=240 << 10, capacity=227 << 10)
    assert _kernel(asked) == "A kernel asks for 240.0KiB of shared memory, and a block can have 227.0KiB"
