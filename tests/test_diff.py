"""Two reports side by side."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from xlamem.analysis.diff import RowChange, diff
from xlamem.commands.diff import command
from xlamem.readers.dump import read_dump
from xlamem.report import Allocation, MemoryReport, Source, Space
from xlamem.shape import Shape
from xlamem.show import diff as shown
from xlamem.show.layout import text_of

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"


def row(
    op_name: str | None, shape: str, size: int, kind: str = "temp", name: str | None = None
) -> Allocation:
    return Allocation("hbm", kind, size, shape=Shape.parse(shape), op_name=op_name, name=name)


def report(*rows: Allocation, fits: bool | None = True, partial: bool = False) -> MemoryReport:
    used = sum(int(a.bytes) for a in rows)
    return MemoryReport(
        "success", "info", Source("x", "dump"), "", fits=fits, allocations=rows, partial=partial,
        spaces=(Space("hbm", used=used, capacity=1000, over=max(0, used - 1000)),),
    )  # fmt: skip


def told(rows: tuple[RowChange, ...]) -> list[tuple[str, str | None, int, int, int]]:
    return [(r.what, r.row.op_name, r.before, r.after, r.count) for r in rows]


def test_grown_shrunk_new_and_gone() -> None:
    before = report(
        row("a", "f32[10]", 40), row("b", "f32[5]", 20), row("c", "f32[1]", 4), row("same", "f32[2]", 8)
    )
    after = report(
        row("a", "f32[20]", 80), row("b", "f32[4]", 16), row("d", "f32[3]", 12), row("same", "f32[2]", 8)
    )
    assert told(diff(before, after).rows) == [
        ("grown", "a", 40, 80, 1),
        ("new", "d", 0, 12, 1),
        ("gone", "c", 4, 0, 1),
        ("shrunk", "b", 20, 16, 1),
    ]


def test_a_new_name_for_the_same_thing_is_no_change() -> None:
    before = report(row("jit(f)/mul", "f32[10]", 40))
    assert diff(before, report(row("jit(g)/mul", "f32[10]", 40))).rows == ()
    # Another layout of another size is.
    assert len(diff(before, report(row("jit(g)/mul", "f32[10]{0:T(1024)}", 4096))).rows) == 2


def test_a_donated_argument_is_the_same_argument() -> None:
    before = report(row("w", "f32[10]", 40, "argument"))
    assert diff(before, report(row("w", "f32[10]", 40, "alias"))).rows == ()


def test_the_same_change_many_times_is_one_row() -> None:
    before = report(*(row("layer", "f32[10]", 40) for _ in range(5)))
    after = report(*(row("layer", "f32[20]", 80) for _ in range(7)))
    assert told(diff(before, after).rows) == [("grown", "layer", 200, 400, 5), ("new", "layer", 0, 160, 2)]


def test_rows_explain_the_total() -> None:
    one, other = read_dump(DUMPS / "tpu_fit")[0], read_dump(DUMPS / "tpu_oom")[0]
    found = diff(one, other)
    (peak,) = (s for s in found.sizes if (s.space, s.name) == ("hbm", "peak"))
    assert sum(r.change for r in found.rows) == peak.change
    back = diff(other, one)
    assert sorted(r.change for r in back.rows) == sorted(-r.change for r in found.rows)
    assert diff(one, one).rows == ()
    assert all(not s.change for s in diff(one, one).sizes)


def test_verdicts() -> None:
    small, large = report(row("a", "f32[1]", 4)), report(row("a", "f32[500]", 2000), fits=False)
    assert diff(small, large).verdict_changed
    assert "it fitted before and no longer does" in text_of(shown.lines(diff(small, large), 80, 20))
    assert "it fits now" in text_of(shown.lines(diff(large, small), 80, 20))
    assert "does not fit, before and after" in text_of(shown.lines(diff(large, large), 80, 20))
    assert not diff(small, replace(large, fits=None)).verdict_changed


def test_partial_lists_carry_a_caveat() -> None:
    found = diff(report(row("a", "f32[1]", 4), partial=True), report(row("b", "f32[9]", 36)))
    assert not found.complete
    assert "what is new may only have been too small before" in text_of(shown.lines(found, 100, 20))


def test_json_and_csv_are_whole() -> None:
    found = diff(read_dump(DUMPS / "tpu_fit")[0], read_dump(DUMPS / "tpu_oom")[0])
    whole = json.loads(shown.to_json(found))
    assert (whole["schema"], whole["command"], whole["verdict_changed"]) == (1, "diff", True)
    assert whole["spaces"]["hbm"]["used"] == {
        "before": 5403568640,
        "after": 38863540736,
        "change": 38863540736 - 5403568640,
    }
    assert len(whole["changes"]) == len(found.rows)
    rows = list(csv.DictReader(io.StringIO(shown.to_csv(found))))
    assert [int(r["change"]) for r in rows] == [c["change"] for c in whole["changes"]]


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_every_format_of_no_difference(form: str) -> None:
    found = diff(report(row("a", "f32[1]", 4)), report(row("a", "f32[1]", 4)))
    text = {
        "text": lambda: text_of(shown.lines(found, 80, 20)),
        "json": lambda: shown.to_json(found),
        "csv": lambda: shown.to_csv(found),
        "markdown": lambda: shown.to_markdown(found, 20),
    }[form]()
    assert text.endswith("\n")


def test_command(tmp_path: Path) -> None:
    fit, oom = str(DUMPS / "tpu_fit"), str(DUMPS / "tpu_oom")
    runner = CliRunner()
    done = runner.invoke(command, [fit, oom])
    assert done.exit_code == 3, done.output
    assert done.output.startswith(
        "HBM: 31.16GiB more (5.03GiB -> 36.19GiB); it fitted before and no longer does\n"
    )
    assert runner.invoke(command, [oom, fit]).exit_code == 0
    assert runner.invoke(command, [oom, fit, "--budget", "5G"]).exit_code == 3
    out = tmp_path / "d.json"
    assert runner.invoke(command, [oom, fit, "-o", str(out)]).exit_code == 0
    assert json.loads(out.read_text())["after"]["fits"] is True


def test_text_of_two_dumps(golden: Callable[[str, str], None]) -> None:
    found = diff(read_dump(DUMPS / "tpu_fit")[0], read_dump(DUMPS / "tpu_oom")[0], 14 << 30)
    golden("diff.txt", text_of(shown.lines(found, 100, 8)))
    golden("diff.md", shown.to_markdown(found, 8))


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_wider_than_asked_for(width: int) -> None:
    found = diff(read_dump(DUMPS / "tpu_fit")[0], read_dump(DUMPS / "tpu_oom")[0])
    assert max(map(len, text_of(shown.lines(found, width, 50)).splitlines()[3:])) <= max(width, 80)


def test_the_budget_is_in_the_answer() -> None:
    small, large = report(row("a", "f32[1]", 4)), report(row("a", "f32[500]", 2000))
    over = diff(small, large, 1500)
    assert over.over_budget == 500
    assert "over the budget of 1.5KiB by 500B" in text_of(shown.lines(over, 100, 20))
    within = diff(large, small, 1500)
    assert within.over_budget == 0
    assert "within the budget of 1.5KiB" in text_of(shown.lines(within, 100, 20))
    assert json.loads(shown.to_json(over))["over_budget"] == 500
    assert diff(small, replace(large, spaces=()), 1500).over_budget is None


def test_only_a_layout_that_changed_is_shown() -> None:
    before = row("a", "f32[8,128]{1,0:T(8,128)}", 4096)
    after = row("a", "f32[8,128]{0,1:T(8,128)}", 65536)
    text = text_of(shown.lines(diff(report(before), report(after)), 120, 20))
    assert "f32[8,128]{1,0:T(8,128)} -> f32[8,128]{0,1:T(8,128)}" in text
    larger = row("a", "f32[16,128]{1,0:T(8,128)}", 8192)
    assert "f32[8,128] -> f32[16,128]" in text_of(shown.lines(diff(report(before), report(larger)), 120, 20))


def test_what_lists_nothing_says_nothing_about_rows() -> None:
    found = diff(report(row("a", "f32[1]", 4)), replace(report(), partial=True))
    assert found.rows == ()
    assert not found.complete
    text = text_of(shown.lines(found, 100, 20))
    assert "One of the two lists nothing: what changed is only known in total." in text
    assert "One of the two lists nothing" in shown.to_markdown(found, 20)


def test_nothing_changed_is_said() -> None:
    same = diff(report(row("a", "f32[1]", 4)), report(row("a", "f32[1]", 4)))
    assert "Nothing changed, in total or in any row." in text_of(shown.lines(same, 80, 20))


def test_a_module_of_a_folder() -> None:
    folder = str(DUMPS / "cpu")
    done = CliRunner().invoke(command, [folder, folder, "--module", "jit_f"])
    assert "HOST: 101.01MiB as before" in done.output
    log = str(DUMPS.parent / "logs" / "unet_kernel_v2.log")
    mixed = CliRunner().invoke(command, [log, str(DUMPS / "tpu_oom")])
    assert mixed.exit_code == 3
    assert "HBM: 10.20GiB more (25.99GiB -> 36.19GiB); it does not fit, before and after" in mixed.output
