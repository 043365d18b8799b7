"""What a dump or a module tells beyond a log, in every output: the peak, the owners, padding, layout copies."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from xlamem.commands import main
from xlamem.explanation import explain
from xlamem.finding import Explanation
from xlamem.readers import read
from xlamem.show import peak as show_peak
from xlamem.show.csv import to_values_csv
from xlamem.show.json import to_json
from xlamem.show.markdown import to_markdown
from xlamem.show.program import VALUE_COLUMNS
from xlamem.show.terminal import to_text

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"
FOLDERS = ("tpu_fit", "tpu_oom", "train", "padded", "tpu_2024", "cpu")


def explained(folder: str) -> Explanation:
    found = explain(read(DUMPS / folder))
    # The name of the file is another wherever the tests are.
    return replace(found, report=replace(found.report, source=replace(found.report.source, name=folder)))


@pytest.mark.parametrize("width", [80, 100, 160])
def test_text(width: int, golden: Callable[[str, str], None]) -> None:
    golden(f"dump_{width}.txt", to_text([explained("tpu_fit")], width=width, top=4))


def test_text_of_everything(golden: Callable[[str, str], None]) -> None:
    golden("dump_everything.txt", to_text([explained("tpu_fit")], top=4, everything=True))


def test_text_of_a_program_that_does_not_fit(golden: Callable[[str, str], None]) -> None:
    golden("dump_oom.txt", to_text([explained("tpu_oom")], top=4))


def test_markdown(golden: Callable[[str, str], None]) -> None:
    golden("dump.md", to_markdown([explained("tpu_fit")], top=4))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_line_is_wider_than_asked_for(folder: str) -> None:
    for width in (60, 80, 120):
        for everything in (False, True):
            _, *lines = to_text([explained(folder)], width=width, everything=everything).splitlines()
            code = [line for line in lines if line.startswith("        ") and ("=" in line or "#" in line)]
            assert [line for line in lines if len(line) > width and line not in code] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_trees_and_the_list_add_up_to_the_peak(folder: str) -> None:
    found = explained(folder)
    assert found.peak is not None
    assert found.report.space is not None
    live = found.peak.live
    assert sum(a.bytes for a in found.report.in_space(found.peak.space)) == live
    for tree in (found.peak.owners, found.peak.scopes, found.peak.sources):
        assert sum(child.bytes for child in tree.children) == live
        assert sum(child.padding for child in tree.children) == found.peak.padding
    assert live + (found.peak.fragmentation or 0) == found.report.space.total


def test_json_has_the_exact_table() -> None:
    (report,) = json.loads(to_json([explained("tpu_oom")]))["reports"]
    assert sum(a["bytes"] for a in report["buffer_assignment"] if a["space"] == "hbm") == 38863540736
    heap = max(report["buffer_assignment"], key=lambda a: a["bytes"])
    assert heap["kind"] == "temp"
    values = {value["name"]: value for value in heap["values"] if not value["index"]}
    value = values["fusion.19.remat"]
    assert value["bytes"] == 2097152000
    assert value["shape"] == "f32[524288,1000]{0,1:T(8,128)}"
    assert (value["source_file"], value["source_line"]) == ("/home/user/project/progs.py", 26)
    assert (value["live"], value["at_peak"], value["padding_bytes"]) == ([83, 87], True, 0)
    assert {value["at_peak"] for value in heap["values"]} == {True, False}
    (line,) = [found for found in report["timelines"] if found["space"] == "hbm"]
    peak = report["peak"]
    assert line["live"][peak["position"]] == max(line["live"]) == peak["live"]
    assert len(line["live"]) == len(line["unpadded"]) == len(line["instructions"]) == peak["steps"]
    assert peak["instruction"] == line["instructions"][peak["position"]] == "fusion.19.remat"
    assert (peak["op_name"], peak["source_line"]) == ("jit(loss)/jvp()/dot_general", 26)
    owners = {owner["name"]: owner for owner in peak["owners"]}
    assert owners["saved activations"]["known_by"] == "trace"
    assert owners["batch"]["known_by"] == "name"
    assert report["copies"] == []


def test_json_of_a_log_has_the_same_keys() -> None:
    log = explain(read(Path(__file__).parent.parent / "fixtures" / "logs" / "unet_kernel_v2.log"))
    (first,), (second,) = (json.loads(to_json([e]))["reports"] for e in (log, explained("padded")))
    assert list(first) == list(second)
    assert (first["peak"], first["buffer_assignment"], first["timelines"]) == (None, [], [])


def test_csv_of_values() -> None:
    found = explained("tpu_fit")
    assert found.whole is not None
    rows = list(csv.DictReader(io.StringIO(to_values_csv([found]))))
    assert tuple(rows[0]) == VALUE_COLUMNS
    assert len(rows) == sum(len(a.buffers) or 1 for a in found.whole.allocations)
    padded = [row for row in rows if row["shape"] == "bf16[65536,5,5]{1,2,0:T(8,128)(2,1)}"]
    assert {row["axis_padding"] for row in padded} == {
        "axis 1: 5 padded to 128 lanes (25.6x); axis 2: 5 padded to 8 sublanes (1.6x)"
    }
    assert {row["at_peak"] for row in rows} == {
        "true",
        "false",
        "",
    }  # "": what is thread-local has no live range


def test_the_command_writes_values() -> None:
    done = CliRunner().invoke(main, ["explain", str(DUMPS / "padded"), "-f", "csv", "--per", "value"])
    assert done.exit_code == 0
    assert done.output.startswith("report,report_kind,input,program,target,allocation,offset,index,space,")


def test_a_peak_without_names_and_holes() -> None:
    found = explained("padded").peak
    assert found is not None
    bare = replace(found, op_name=None, source_file=None, fragmentation=None, alive=1)
    assert show_peak.whence(bare) == ""
    assert show_peak.sentences(bare)[0] == "1.00GiB are alive: 24.00MiB of data and 1000.00MiB of padding."
    assert show_peak.sentences(replace(bare, provenance="estimated"))[0].startswith(
        "At most 1.00GiB are alive"
    )
    text = to_text([replace(explained("padded"), peak=bare)])
    assert "step 1 of" in text


def test_a_module_alone_is_estimated_and_says_so() -> None:
    (path,) = (DUMPS / "tpu_oom").glob("*after_optimizations.txt")
    text = to_text([explain(read(path))])
    assert text.startswith("Estimated, program jit_loss: needs at most about 37.17GiB of HBM on a TPU.")
    assert "At most 37.17GiB are alive" in text
    assert "estimated, at most: fits" in text
    # Only what is alive at the peak is listed, so that the list adds up.
    report = explain(read(path)).report
    assert report.space is not None
    assert sum(a.bytes for a in report.in_space("hbm")) == report.space.peak


def test_where_the_figures_of_a_dump_come_from() -> None:
    text = to_text([explained("tpu_fit")])
    assert "HBM of v5e (by the dump's files)" in text
    assert "4.89GiB of what it uses are padding (computed)." in text
    assert "5.03GiB, estimated from this compile, only another one tells: fits all 6" in text
    assert "reported" not in text
