"""The outputs that programs read: JSON, CSV, Markdown, pandas."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pandas
from samples import HOSTILE, hostile, padded, short

from xlamem.show.csv import to_csv
from xlamem.show.frame import frame_of, to_frame
from xlamem.show.json import to_json
from xlamem.show.markdown import to_markdown
from xlamem.show.rows import ALLOCATION_COLUMNS, COLUMNS, SIZE_COLUMNS

Golden = Callable[[str, str], None]

# The schema's first version. A key may be added to the output; none of these may ever go or be renamed.
REPORT_KEYS = (
    "kind severity backend target program fits provenance spaces allocations findings advice checks unparsed"
)
SPACE_KEYS = (
    "capacity used over requested free reserved arguments outputs aliased temps constants overlays scoped "
    "unpadded padded padding fragmentation peak total"
)
ALLOCATION_KEYS = (
    "space kind bytes unpadded_bytes padding_bytes expansion shape opcode op_name label source_file "
    "source_line axis_padding owner live at_peak provenance"
)


def test_json(golden: Golden) -> None:
    golden("explain.json", to_json([padded(), short()]))


def test_csv(golden: Golden) -> None:
    golden("explain.csv", to_csv([padded(), short(), padded()]))


def test_markdown(golden: Golden) -> None:
    golden("explain.md", to_markdown([padded(), short()]))


def test_json_has_every_key_of_schema_1() -> None:
    document = json.loads(to_json([padded(), short()]))
    assert document["schema"] == 1
    assert document["command"] == "explain"
    assert document["source"]["name"] == "oom.log"
    for report in document["reports"]:
        assert set(REPORT_KEYS.split()) <= set(report)
        for space in report["spaces"].values():
            assert set(SPACE_KEYS.split()) <= set(space)
        for item in report["allocations"]:
            assert set(ALLOCATION_KEYS.split()) <= set(item)
    first = document["reports"][0]
    assert first["target"] == {"name": "v2", "inferred": True}
    assert first["allocations"][0]["axis_padding"][0]["axis"] == 1
    assert set(first["allocations"][0]["axis_padding"][0]) >= {"axis", "from", "to", "why"}
    assert set(first["findings"][0]) == {"name", "bytes", "text"}
    advice_keys = {"name", "verified", "before", "after", "saved", "safe", "value_error", "how", "text"}
    assert advice_keys <= set(first["advice"][0])
    assert document["reports"][1]["target"] is None


def test_json_sizes_are_integers_and_absent_facts_null() -> None:
    first = json.loads(to_json([padded()]))["reports"][0]
    for space in first["spaces"].values():
        for name in SPACE_KEYS.split():
            assert space[name] is None or type(space[name]) is int
    hbm = first["spaces"]["hbm"]
    assert hbm["padding"] == hbm["padded"] - hbm["unpadded"] > 0
    assert first["allocations"][4]["shape"] is None
    assert first["allocations"][4]["live"] is None
    assert first["allocations"][0]["bytes"] == 12.5 * 2**30


def test_json_of_hostile_input_is_valid_and_ascii() -> None:
    text = to_json([hostile()])
    assert text.isascii()
    assert all(c == "\n" or c.isprintable() for c in text)
    assert "\\udcff" not in text  # strict readers refuse a lone surrogate
    name = json.loads(text)["reports"][0]["allocations"][0]["name"]
    assert name == HOSTILE.replace("\udcff", "?")


def test_json_has_no_nan() -> None:
    explanation = padded()
    space = replace(explanation.report.spaces[0], utilization=float("nan"))
    text = to_json([replace(explanation, report=replace(explanation.report, spaces=(space,)))])
    assert "NaN" not in text


def test_json_of_nothing() -> None:
    assert json.loads(to_json([]))["reports"] == []


def test_csv_is_one_row_an_allocation() -> None:
    text = to_csv([padded(), short(), padded()])
    records = list(csv.DictReader(io.StringIO(text)))
    assert text.split("\r\n", 1)[0] == ",".join(COLUMNS)
    assert [r["report"] for r in records] == ["1"] * 5 + ["3"] * 5
    assert records[0]["bytes"] == str(int(12.5 * 2**30))
    assert records[4]["unpadded_bytes"] == ""
    assert "axis 1: 1 " in records[0]["axis_padding"]


def test_csv_of_hostile_input_holds_no_formula() -> None:
    text = to_csv([hostile()])
    body = list(csv.reader(io.StringIO(text)))
    assert len(body) == 2
    assert not any(cell[:1] and cell[0] in "=+-@\t\r" for cell in body[1])
    assert all(c in "\r\n" or c.isprintable() for c in text)
    assert body[1][COLUMNS.index("op_name")].startswith("'=cmd()")


def test_markdown_of_hostile_input_is_inert() -> None:
    text = to_markdown([hostile()])
    assert all(c == "\n" or c.isprintable() for c in text)
    outside = [line for line in text.splitlines() if "alert" in line and not line.startswith("  ")]
    assert outside
    assert not any("<script" in line or "@you" in line for line in outside)
    # The code of a suggestion stays in its fence, though it holds a fence itself.
    assert "  ````python" in text
    table = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 11


def test_frame_has_integers_and_the_json_s_names() -> None:
    frame = to_frame(padded().report)
    assert tuple(frame.columns) == ALLOCATION_COLUMNS
    assert len(frame) == 5
    assert all(str(frame[name].dtype) == "Int64" for name in SIZE_COLUMNS)
    assert int(frame["bytes"].iloc[0]) == 12.5 * 2**30
    assert frame["unpadded_bytes"].isna().sum() == 1
    assert pandas.notna(frame["expansion"].iloc[0])


def test_frame_of_nothing_has_the_same_columns_and_types() -> None:
    empty, full = to_frame(short().report), to_frame(padded().report)
    assert len(empty) == 0
    assert list(empty.dtypes) == list(full.dtypes)


def test_frame_of_several_reports_says_which() -> None:
    frame = frame_of([padded().report, short().report, hostile().report])
    assert tuple(frame.columns) == COLUMNS
    assert set(frame["report"]) == {1, 3}


def test_the_outputs_import_neither_jax_nor_pandas() -> None:
    code = (
        "import sys, xlamem.show.terminal, xlamem.show.json, xlamem.show.csv, xlamem.show.markdown,"
        " xlamem.show.frame, xlamem.commands; print({'jax', 'numpy', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
