"""Every real log: what it tells, read off it by eye. One row a distinct failure or success, the first shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlamem.analysis.headline import headline
from xlamem.errors import NotAReportError
from xlamem.explanation import explain
from xlamem.readers import read_all
from xlamem.units import parse_size

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"

Row = tuple[str, str | None, dict[str, str], int]
HBM_16G = {"capacity": "15.75G"}

#: kind, program, figures of the main space as printed, number of allocations.
FACTS: dict[str, list[Row]] = {
    "unet_kernel_v2": [("hbm", None, {"used": "25.99G", "capacity": "7.48G", "over": "18.50G"}, 12)],
    "0.0.7_v5e_args_20G": [
        ("hbm", None, {"used": "20.00G", "over": "4.25G", "arguments": "20.00G", **HBM_16G}, 1)
    ],
    "0.0.7_v5e_mlp": [("hbm", None, {"used": "78.13G", "over": "62.38G", **HBM_16G}, 20)],
    "0.0.7_v5e_padded_batchmat": [("hbm", None, {"used": "320.97G", "capacity": "14.96G"}, 0)],
    "0.0.7_v5e_padded_batchmat_22G": [("hbm", None, {"used": "20.02G", "over": "4.27G", **HBM_16G}, 20)],
    "0.0.7_v5e_fastexit_off_batchmat_80G": [
        ("hbm", None, {"requested": "25769803776", "capacity": "17179869184"}, 1)
    ],
    "0.0.7_v5e_pallas_scoped_vmem": [
        ("onchip", None, {"used": "32.00M", "capacity": "16.00M", "over": "16.00M"}, 1)
    ],
    "0.0.7_v5e_pallas_sflag": [("onchip", None, {"requested": "400000", "capacity": "2048"}, 1)],
    "0.0.7_v5e_pallas_smem": [("onchip", None, {"requested": "4194304", "capacity": "1048576"}, 1)],
    "0.0.23_v5e_mlp": [("hbm", None, {"used": "92.77G", "over": "77.03G", **HBM_16G}, 20)],
    "0.0.23_v5e_padded_batchmat": [
        ("hbm", None, {"requested": "103079215104", "capacity": "17179869184"}, 1)
    ],
    "0.0.23_v5e_pallas_scoped_vmem": [
        ("onchip", None, {"used": "32.00M", "capacity": "16.00M", "over": "16.00M"}, 1)
    ],
    "0.0.23_v5e_pallas_sflag": [("onchip", None, {"requested": "400000", "capacity": "2048"}, 1)],
    "0.0.23_v5e_pallas_smem": [("onchip", None, {"requested": "4194304", "capacity": "1048576"}, 1)],
    "0.0.37_v5e_mlp": [("hbm", None, {"used": "92.77G", "over": "77.03G", **HBM_16G}, 20)],
    "0.0.37_v5e_padded_batchmat": [
        ("hbm", None, {"requested": "103079215104", "capacity": "17179869184"}, 1)
    ],
    "0.0.37_v5e_padded_batchmat_22G": [("hbm", None, {"used": "20.02G", "over": "4.27G", **HBM_16G}, 20)],
    "0.0.37_v5e_pallas_scoped_vmem": [
        ("onchip", None, {"used": "64.00M", "capacity": "16.00M", "over": "48.00M"}, 1)
    ],
    "0.0.37_v5e_pallas_sflag": [("onchip", None, {"requested": "400000", "capacity": "2048"}, 1)],
    "0.0.37_v5e_pallas_smem": [("onchip", None, {"requested": "4194304", "capacity": "1048576"}, 1)],
    "0.0.42.1_v2_args_240G": [("hbm", None, {"used": "240.00G", "capacity": "7.48G"}, 0)],
    # a rematerialization warning, a usage report of 43 + 1 rows, and the exception: one failure
    "0.0.42.1_v5e_args_stderr1": [("hbm", None, {"used": "20.00G", "over": "4.25G", **HBM_16G}, 44)],
    "0.0.42.1_v5e_argsouts_edge": [("hbm", None, {"used": "15.75G", "over": "1.88M", **HBM_16G}, 7)],
    "0.0.42.1_v5e_batchmat_E1000_long": [
        ("hbm", None, {"used": "5.04G", "capacity": "5.03G", "over": "2.69M", "outputs": "10.00M"}, 23)
    ],
    "0.0.42.1_v5e_batchmat_fit_stderr0": [("success", "jit_loss", {"program": "5.01G", **HBM_16G}, 0)],
    "0.0.42.1_v5e_mlp_oom_dump": [("hbm", None, {"used": "36.19G", **HBM_16G}, 0)],
    "0.0.42.1_v5e_pallas_grid": [
        ("onchip", None, {"used": "64.00M", "capacity": "16.00M", "over": "48.00M"}, 1)
    ],
    "0.0.42.1_v5e_pallas_sem": [("onchip", None, {"requested": "400000", "capacity": "2048"}, 1)],
    "0.0.42.1_v5e_pallas_smem": [("onchip", None, {"requested": "4194304", "capacity": "1048576"}, 1)],
    "0.0.42.1_v5e_pallas_vmem": [
        ("onchip", None, {"used": "256.00M", "capacity": "128.00M", "over": "128.00M"}, 2)
    ],
    "0.0.42.1_v5e_scoped_vmem_xla_mlp": [
        ("onchip", None, {"used": "448.0K", "capacity": "128.0K", "over": "320.0K"}, 1)
    ],
    "0.0.42.1_v5p_pallas_scoped_vmem": [
        ("onchip", None, {"requested": "134217728", "capacity": "67108864"}, 1)
    ],
    "0.0.50.1_v5e_args_edge_overlays": [("hbm", None, {"used": "15.75G", "over": "1.88M", **HBM_16G}, 7)],
    "0.0.50.1_v5e_mlp": [("hbm", "jit_loss", {"used": "94.88G", **HBM_16G}, 0)],
    "0.0.50.1_v5e_pallas_scoped_vmem": [
        ("onchip", None, {"used": "64.00M", "capacity": "16.00M", "over": "48.00M"}, 1)
    ],
    # told to go on three times, twice with a list; in the end the program was made, of the same size
    "0.0.42.1_v5e_padded_b_409600_nocrash_stderr0": [
        ("hbm", "jit_f", {"used": "31.25G", "over": "15.50G", **HBM_16G}, -1)
    ],
    # the whole program, told to go on; then one buffer, told to go on for two instructions, fatal for a third
    "0.0.42.1_v5e_scan_nocrash_stderr0": [
        ("hbm", None, {"requested": "21474836480", "capacity": "17179869184"}, 1),
        ("hbm", None, {"used": "51.89G", "over": "36.14G", **HBM_16G}, -1),
    ],
    "0.0.50.1_v5e_inprocess": [
        ("hbm", None, {"used": "20.00G", **HBM_16G}, 0),
        ("success", None, {"arguments": "10737418240", "outputs": "512", "temps": "64512"}, 0),
    ],
}


@pytest.mark.parametrize("name", FACTS)
def test_what_a_log_tells(name: str) -> None:
    reports = read_all(LOGS / f"{name}.log")
    assert len(reports) == len(FACTS[name])
    for report, (kind, program, figures, count) in zip(reports, FACTS[name], strict=True):
        assert (report.kind, report.program) == (kind, program)
        assert report.space is not None
        for key, value in figures.items():
            # Where another message of the failure had the exact bytes, they are within the printed digits.
            assert parse_size(value).agrees_with(int(getattr(report.space, key))), key
        assert count in (-1, len(report.allocations))
        assert report.unparsed == ()
        assert report.fits is (None if program is None and kind == "success" else kind == "success")


def test_no_real_log_is_left_out() -> None:
    tpu = {path.stem for path in LOGS.glob("*.log") if not path.stem.startswith(("gpu_", "cpu_"))}
    assert tpu == FACTS.keys()


@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log")), ids=lambda p: p.stem)
def test_every_log_gets_an_answer_in_its_first_line(log: Path) -> None:
    try:
        reports = read_all(log)
    except NotAReportError:
        pytest.fail("every log here holds a report")
    for report in reports:
        line = headline(report)
        assert line.endswith(".")
        assert "\n" not in line
        assert "None" not in line
        explain(report)
