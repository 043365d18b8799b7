"""Damaged dumps: whatever is cut or changed, the answer is a report with a note or a clear refusal."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xlamem.errors import NotAReportError
from xlamem.readers.dump import read_bytes, read_dump

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"
FILES = sorted(
    p
    for folder in ("cpu", "tpu_2024", "padded")
    for p in (DUMPS / folder).iterdir()
    if p.stat().st_size < 30_000
)
TRAIN = sorted((DUMPS / "train").iterdir())


def damaged(data: bytes, cut: float, flips: list[tuple[float, int]]) -> bytes:
    changed = bytearray(data[: int(len(data) * cut)])
    for where, value in flips:
        if changed:
            changed[int(where * (len(changed) - 1))] = value
    return bytes(changed)


fraction = st.floats(0, 1)
flips = st.lists(st.tuples(fraction, st.integers(0, 255)), max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FILES), fraction, flips)
def test_single_files(path: Path, cut: float, changes: list[tuple[float, int]]) -> None:
    try:
        report = read_bytes(path.name, damaged(path.read_bytes(), cut, changes))
    except NotAReportError:
        return
    assert report is None or report.spaces


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(TRAIN), fraction, flips, st.sets(st.sampled_from(TRAIN), max_size=3))
def test_folders(path: Path, cut: float, changes: list[tuple[float, int]], missing: set[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for other in TRAIN:
            if other not in missing:
                shutil.copy(other, folder)
        (Path(folder) / path.name).write_bytes(damaged(path.read_bytes(), cut, changes))
        try:
            reports = read_dump(folder)
        except NotAReportError:
            return
        assert len(reports) == 1
        assert reports[0].program == "jit_step"


TABLES = [p for p in FILES if p.name.endswith("-buffer-assignment.txt") and "2024" not in str(p)]


@pytest.mark.parametrize("path", TABLES, ids=lambda p: p.name)
def test_cut_in_the_middle_of_a_line_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    report = read_bytes(path.name, data[: data.rindex(b" value:") + 5])
    assert report is not None
    assert report.truncated
