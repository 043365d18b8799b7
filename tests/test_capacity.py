"""A dump against a capacity that the user gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xlamem.commands import main
from xlamem.readers import read

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"
GIB = 1 << 30


def only(folder: str, ending: str) -> Path:
    (path,) = (DUMPS / folder).glob(f"*after_optimizations{ending}")
    return path


def explained(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["explain", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "code", "answer"),
    [
        (
            [DUMPS / "tpu_oom"],
            3,
            "Out of HBM on TPU v5e (inferred), program jit_loss: 36.19GiB used of 15.75GiB",
        ),
        ([DUMPS / "tpu_oom", "--hbm", "64G"], 0, "Fits, program jit_loss: uses 36.19GiB of 64.00GiB HBM"),
        (
            [DUMPS / "tpu_fit", "--hbm", "4G"],
            3,
            "Out of HBM on TPU v5e (inferred), program jit_loss: 5.03GiB used of",
        ),
        (
            [only("tpu_oom", ".hlo.pb"), "--target", "v5e"],
            3,
            "Out of HBM on TPU v5e, program jit_loss: 36.19GiB used",
        ),
        (
            [only("tpu_oom", ".hlo.pb"), "--target", "v5p"],
            0,
            "Fits, program jit_loss: uses 36.19GiB of 95.74GiB HBM",
        ),
        # An upper bound that is too much decides nothing; one that fits does.
        (
            [only("tpu_oom", ".txt"), "--hbm", "16G"],
            0,
            "Estimated, program jit_loss: needs at most about 37.17GiB",
        ),
        (
            [only("tpu_oom", ".txt"), "--hbm", "64G"],
            0,
            "Fits, program jit_loss: needs at most about 37.17GiB of 64",
        ),
    ],
)
def test_the_answer(arguments: list[object], code: int, answer: str) -> None:
    done = explained(*arguments)
    assert done.output.startswith(answer)
    assert done.exit_code == code


def test_the_report_is_judged_as_a_whole() -> None:
    report = read(DUMPS / "tpu_fit", hbm=4 * GIB)
    assert (report.kind, report.severity, report.fits) == ("hbm", "error", False)
    assert report.message == "jit_loss needs 5.03GiB of HBM; 4.00GiB can be used"
    assert report.space is not None
    assert report.space.over == report.space.used - 4 * GIB  # type: ignore[operator]
    report = read(DUMPS / "tpu_oom", hbm=64 * GIB)
    assert (report.kind, report.severity, report.fits) == ("success", "info", True)
    assert report.space is not None
    assert report.space.over is None


def test_an_upper_bound_leaves_it_open() -> None:
    report = read(only("tpu_oom", ".txt"), hbm=16 * GIB)
    assert (report.kind, report.fits) == ("success", None)
