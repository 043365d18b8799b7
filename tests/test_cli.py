from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xlamem import __version__
from xlamem.commands import main
from xlamem.commands.options import Output
from xlamem.commands.progress import progress_bar

OOM = """\
Traceback (most recent call last):
RuntimeError: Resource exhausted: Ran out of memory in memory space hbm. Used 25.99G of 7.48G hbm. \
Exceeded hbm capacity by 18.50G.

Total hbm usage >= 26.50G:
    reserved        529.00M
    program          25.99G
    arguments       unknown size

Output size unknown.

Program hbm requirement 25.99G:
    reserved           4.0K
    global            36.0K
    HLO temp         25.99G (74.4% utilization: Unpadded (19.34G) Padded (25.98G), \
0.0% fragmentation (10.31M))

  Largest program allocations in hbm:

  1. Size: 12.50G
     Operator: op_type="conv_general_dilated" op_name="jit(f)/conv" source_file="model.py" source_line=12
     Shape: f32[409600,1,64,64]{0,1,3,2:T(2,128)}
     Unpadded size: 6.25G
     Extra memory due to padding: 6.25G (2.0x expansion)
     XLA label: %convolution.5785 = f32[409600,1,64,64]{0,1,3,2:T(2,128)} convolution(...)
     Allocation type: HLO temp
     ==========================
"""
FITS = """\
XLA::TPU program HBM usage: 81.5K / 15.75G
Total hbm usage >= 258.08M:
    reserved        258.00M
    program           81.5K
    arguments           0B
"""
SHAPE = "bf16[3,3,1,1]{3,2,1,0:T(4,128)(2,1)}"


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin)


def python(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, as people run it."""
    return subprocess.run(
        [sys.executable, "-c", "from xlamem.commands import main; main()", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, **environment},
    )


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "oom.log"
    path.write_text(OOM)
    return str(path)


# --- the group


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"xlamem {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("-h",), ("explain", "-h"), ("tile", "-h"), ("targets", "-h")]
)
def test_help_teaches_by_example(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    assert "    xlamem " in result.output


def test_every_command_has_the_output_options() -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        text = run(name, "--help").output
        for option in ("--format", "--output", "--top", "--no-color"):
            assert option in text, (name, option)


def test_every_example_of_the_help_names_a_command() -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert name in run("--help").output


@pytest.mark.parametrize(
    ("typed", "hint"), [("expain", "'explain'"), ("oom.log", "'xlamem explain oom.log'"), ("zzz", "'zzz'")]
)
def test_a_command_that_is_none(typed: str, hint: str) -> None:
    result = run(typed)
    assert result.exit_code == 2
    assert hint in result.output


def test_no_command_shows_the_help() -> None:
    result = run()
    assert "Commands:" in result.output
    assert result.exit_code == 2


def test_a_command_loads_only_what_it_needs(log: str) -> None:
    code = (
        "import sys; from xlamem.commands import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'jax', 'numpy', 'pandas', 'rich', 'csv', 'json'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, "explain", log], capture_output=True, check=True)
    assert done.stderr == b"[]\n"


# --- explain


def test_explain_a_file(log: str) -> None:
    result = run("explain", log)
    assert result.exit_code == 3
    first = result.output.split("\n", 1)[0]
    assert "25.99GiB" in first
    assert "18.50GiB" in first
    assert "axis 1: 1 padded to 2 sublanes" in result.output


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_explain_standard_input(arguments: tuple[str, ...], log: str) -> None:
    result = run("explain", *arguments, stdin=OOM)
    assert result.exit_code == 3
    assert result.output == run("explain", log).output


def test_explain_on_a_terminal_without_a_log_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlamem.commands.explain.sys", _Terminal)
    result = run("explain")
    assert result.exit_code == 2
    assert "name a log" in result.output


class _Terminal:
    class stdin:  # noqa: N801
        @staticmethod
        def isatty() -> bool:
            return True


def test_what_fits_ends_with_0() -> None:
    assert run("explain", "-", stdin=FITS).exit_code == 0
    assert run("explain", "-", "--hbm", "32G", stdin=OOM).exit_code == 0


def test_hbm_and_target_override_the_report() -> None:
    result = run("explain", "-", "--hbm", "20 GiB", "--target", "TPU v5 lite", "-f", "json", stdin=OOM)
    assert result.exit_code == 3
    report = json.loads(result.output)["reports"][0]
    assert report["spaces"]["hbm"]["capacity"] == 20 << 30
    assert report["target"] == {"name": "v5e", "inferred": False}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--hbm", "much", "not a size"),
        ("--hbm", "0", "more than nothing"),
        ("--target", "v99", "no target 'v99'"),
        ("--format", "yaml", "yaml"),
        ("--top", "0", "--top"),
        ("--width", "3", "--width"),
    ],
)
def test_a_wrong_value_is_wrong_usage(option: str, value: str, words: str) -> None:
    result = run("explain", option, value, "-", stdin=OOM)
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize("content", [b"", b"\n", b"step 1 loss 0.3\n", b"\xff\xfe\xfd\n"])
def test_not_a_report_ends_with_4(content: bytes) -> None:
    result = run("explain", "-", stdin=content)
    assert result.exit_code == 4
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert "looked for" in result.stderr


@pytest.mark.parametrize("kind", ["missing", "binary"])
def test_what_cannot_be_read_ends_with_1(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    if kind == "binary":
        path.write_bytes(b"\x7fELF\0\0\0\1" * 100)
    result = run("explain", str(path))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output


def test_a_folder_without_a_report_ends_with_4(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("step 1\n")
    result = run("explain", str(tmp_path))
    assert result.exit_code == 4
    assert "no dump, and no memory report in any of its 1 files" in result.stderr


def test_several_inputs(log: str, tmp_path: Path) -> None:
    fits = tmp_path / "fits.log"
    fits.write_text(FITS)
    nothing = tmp_path / "nothing.log"
    nothing.write_text("hello\n")
    result = run("explain", str(fits), str(nothing), log, log, "-f", "json")
    assert result.exit_code == 3
    assert "nothing.log: no memory report" in result.stderr
    document = json.loads(result.stdout)
    assert [report["severity"] for report in document["reports"]] == ["error", "info"]
    assert document["source"]["name"] == log
    assert [source["name"] for source in document["sources"]] == [log, str(fits)]
    missing = run("explain", log, str(tmp_path / "missing.log"))
    assert missing.exit_code == 1
    assert "25.99GiB" in missing.stdout


def test_formats(log: str) -> None:
    assert json.loads(run("explain", log, "-f", "json").output)["schema"] == 1
    records = list(csv.DictReader(io.StringIO(run("explain", log, "-f", "csv").stdout_bytes.decode())))
    assert records[0]["bytes"] == str(int(12.5 * 2**30))
    assert run("explain", log, "-f", "markdown").output.startswith("**")


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.json", "{"), ("a.csv", "report,"), ("a.md", "**"), ("a.txt", "Out of"), ("a", "Out of")],
)
def test_the_name_of_the_output_says_the_format(name: str, start: str, log: str, tmp_path: Path) -> None:
    out = tmp_path / name
    result = run("explain", log, "-o", str(out))
    assert (result.exit_code, result.output) == (3, "")
    assert out.read_text().startswith(start)
    assert "\x1b" not in out.read_text()


def test_a_format_that_is_said_counts_more_than_the_name(log: str, tmp_path: Path) -> None:
    out = tmp_path / "a.md"
    run("explain", log, "-o", str(out), "-f", "json")
    assert out.read_text().startswith("{")
    assert run("explain", log, "-o", "-", "-f", "json").output == out.read_text()


def test_an_output_that_cannot_be_written_is_an_error(log: str, tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "such" / "a.json", tmp_path):
        result = run("explain", log, "-o", str(path))
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {path}: ")


def test_csv_has_the_line_ends_of_rfc_4180(log: str) -> None:
    done = python("explain", log, "-f", "csv")
    assert done.stdout.count(b"\r\n") == done.stdout.count(b"\n") == 2


def test_all_shows_every_report_in_full(log: str, tmp_path: Path) -> None:
    fits = tmp_path / "fits.log"
    fits.write_text(FITS)
    assert "Also in the input" in run("explain", log, str(fits)).output
    assert "Also in the input" not in run("explain", log, str(fits), "--all").output


def test_width(log: str) -> None:
    lines = run("explain", log, "--width", "60").output.splitlines()
    plain = [line for line in lines[1:] if "Layout(" not in line and not line.startswith("        ")]
    assert max(map(len, plain)) <= 60


@pytest.mark.parametrize("extra", [(), ("--no-color",)])
def test_a_pipe_gets_no_colour(extra: tuple[str, ...], log: str) -> None:
    assert b"\x1b" not in python("explain", log, *extra, FORCE_COLOR="1").stdout


def test_a_terminal_gets_colour_unless_it_says_no(log: str) -> None:
    pty = pytest.importorskip("pty")

    def on_terminal(*extra: str, **environment: str) -> bytes:
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-c", "from xlamem.commands import main; main()", "explain", log, *extra],
            stdout=theirs,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
        ):
            os.close(theirs)
            found = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # Linux says so that the other end has closed
                    break
                if not part:
                    break
                found += part
        os.close(ours)
        return found

    environment = dict.fromkeys(("NO_COLOR",), "")
    assert b"\x1b[1;31m" in on_terminal(**environment)
    assert b"\x1b" not in on_terminal("--no-color", **environment)
    assert b"\x1b" not in on_terminal(NO_COLOR="1")
    assert b"\x1b" not in on_terminal(TERM="dumb")


def test_an_output_without_unicode_does_not_fail() -> None:
    odd = OOM.replace("jit(f)/conv", "jit(f)/für/\u202e😀")
    done = python("explain", "-", stdin=odd.encode(), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 3
    assert done.stdout.isascii()
    assert b"f\\xfcr" in done.stdout
    assert b"Traceback" not in done.stderr


def test_output_caught_as_text(log: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit) as ended:
        main(["explain", log])
    assert ended.value.code == 3
    assert out.getvalue() == run("explain", log).output


def test_hostile_names_are_inert_in_every_format() -> None:
    bad = OOM.replace("jit(f)/conv", "=cmd()\x1b]0;title\x07[bold red]<script>\u202e|`")
    for name in ("text", "json", "csv", "markdown"):
        out = run("explain", "-", "-f", name, stdin=bad).output
        assert not set(out) & set("\x1b\x07\u202e"), name
        assert "<script>" not in out or name != "markdown"


def test_a_reader_that_leaves_early_is_no_error(log: str) -> None:
    many = (OOM * 400).encode()
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from xlamem.commands import main; main()",
            "explain",
            "-",
            "--all",
            "-f",
            "json",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(many)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "redirect", "words"),
    [
        ("explain LOG", ">&-", "standard output is closed"),
        ("explain LOG -f json", ">&-", "standard output is closed"),
        ("tile f32[3]", ">&-", "standard output is closed"),
        ("explain -", "<&-", "standard input is closed"),
        ("tile -", "<&-", "standard input is closed"),
        ("--help", ">/dev/full", "No space left"),
        ("--version", ">/dev/full", "No space left"),
        ("explain --help", ">/dev/full", "No space left"),
        ("explain LOG", ">/dev/full", "No space left"),
    ],
)
def test_streams_that_are_closed_or_full(
    arguments: str, redirect: str, words: str, unbuffered: str, log: str
) -> None:
    command = f'"$0" -c "from xlamem.commands import main; main()" {arguments.replace("LOG", log)} {redirect}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("columns", ["9" * 5000, "\u0663\u0663", "-5", "x", ""])
def test_columns_that_make_no_sense(columns: str, log: str) -> None:
    done = python("explain", log, COLUMNS=columns)
    assert (done.returncode, done.stderr) == (3, b"")


def test_a_width_without_bounds() -> None:
    assert Output("text", None, 20, False, 999_999_999).text_width == 10_000


def test_rows_of_failures_need_no_advice(log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "second.log").write_text(OOM)
    full = run("explain", str(tmp_path), "--per", "allocation", "-f", "json")
    verdicts = [report["verdict"] for report in json.loads(full.output)["reports"]]
    monkeypatch.setattr("xlamem.explanation.advise_report", lambda report: 1 / 0)
    rows = list(csv.DictReader(io.StringIO(run("explain", str(tmp_path), "-f", "csv").output)))
    assert [row["verdict"] for row in rows] == verdicts


def test_progress_comes_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("xlamem.commands.progress._PATIENCE", 0)
    with progress_bar(files=True) as progress:
        assert progress is not None
        progress(3, 5000)
    assert "3/5000" in terminal.getvalue()
    monkeypatch.setattr("sys.stderr", None)
    with progress_bar(files=True) as progress:
        assert progress is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "n=3"), "--set is for the inputs function"),
        (("--real-inputs",), "--real-inputs is for the inputs function"),
        (("--module", "x"), "--module is for dump folders"),
        (("--memory-fraction", "0.5"), "--memory-fraction is for GPUs"),
        (("--memory-fraction", "nan"), "nan is no number"),
        (("--timeout", "nan"), "nan is no number"),
        (("--arg", "f32[\u0663]"), "is no array"),
        (("--arg", "f32[99999999999999999999,8]"), "more elements than can be counted"),
    ],
)
def test_options_of_compile_that_make_no_sense(options: tuple[str, ...], words: str) -> None:
    result = run("compile", "train.py:step", "--target", "v5e", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_options_for_functions_with_a_whole_program(tmp_path: Path) -> None:
    result = run("compile", str(tmp_path), "--target", "v5e", "--donate", "0", "--host-backend")
    assert result.exit_code == 2
    assert "--donate, --host-backend not to be given" in " ".join(result.output.split())


def test_both_sides_of_a_diff_from_standard_input() -> None:
    result = run("diff", "-", "-", stdin=OOM)
    assert result.exit_code == 2
    assert "only one of BEFORE and AFTER" in result.output


def test_a_wrong_size_of_the_cache_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAMEM_CACHE_SIZE", "lots")
    result = run("cache")
    assert result.exit_code == 1
    assert "XLAMEM_CACHE_SIZE: 'lots' is not a size" in result.output


def test_ctrl_c_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("xlamem.readers.read_all", interrupt)
    result = run("explain", "-", stdin=OOM)
    assert (result.exit_code, result.output) == (130, "")


# --- tile


def test_tile() -> None:
    result = run("tile", SHAPE)
    assert result.exit_code == 0
    assert (
        result.output.split("\n", 1)[0]
        == "9216 bytes (9.0KiB) for 18 bytes of data: 512x, 9198 bytes of padding"
    )
    assert "axis 3: 1 padded to 128 lanes" in result.output
    assert "What to change" in result.output


def test_tile_without_a_layout_says_which_it_takes() -> None:
    lines = run("tile", "f32[1048576,3]").output.splitlines()
    assert lines[0].startswith("16777216 bytes (16.00MiB) for 12582912 bytes of data: 1.33x")
    assert "{0,1:T(4,128)}: the layout that XLA picks on v5e" in lines[1]


@pytest.mark.parametrize(
    "shape",
    [
        *("f32[]", "f32[0,3]", "token[]", "s4[7]", "()", "(f32[3], s32[])", "b(f32[8])", "pred[8,128]"),
        *(
            "((f32[1,1]{1,0:T(8,128)}, f32[2]), s8[3,3])",
            "f32[<=8,128]",
            "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}",
        ),
    ],
)
@pytest.mark.parametrize("target", ["v2", "v5e", "h100"])
def test_tile_takes_every_kind_of_shape(shape: str, target: str) -> None:
    for name in ("text", "json", "csv", "markdown"):
        result = run("tile", shape, "-f", name, "--target", target)
        assert result.exit_code == 0, result.output
        assert result.output


def test_tile_of_a_tuple_adds_up_and_keeps_the_layouts_that_it_has() -> None:
    document = json.loads(run("tile", "(f32[8,3]{1,0:T(8,128)}, f32[8,3])", "-f", "json").output)
    shape = document["shapes"][0]
    assert shape["shape"] == "(f32[8,3]{1,0:T(8,128)}, f32[8,3]{0,1:T(4,128)})"
    assert shape["bytes"] == 4096 + 2048
    assert [element["bytes"] for element in shape["elements"]] == [4096, 2048]
    assert shape["layout_assumed"] is True


def test_a_shape_that_does_not_parse_gets_a_caret() -> None:
    result = run("tile", "f32[8,12x]")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[1] == "  f32[8,12x]"
    assert lines[2].strip() == "^"


def test_a_wrong_shape_does_not_hide_the_right_ones() -> None:
    result = run("tile", "-", stdin="f32[8,3]\n\nnonsense\nf32[8,128]\n")
    assert result.exit_code == 1
    assert result.stdout.count(" of data: ") == 2
    assert result.stderr.count("error: ") == 1


def test_tile_json() -> None:
    document = json.loads(run("tile", SHAPE, "-f", "json").output)
    assert (document["schema"], document["command"]) == (1, "tile")
    shape = document["shapes"][0]
    assert (shape["bytes"], shape["unpadded_bytes"], shape["expansion"]) == (9216, 18, 512.0)
    assert [axis["axis"] for axis in shape["axis_padding"]] == [3, 2]
    assert shape["orders"][0]["bytes"] <= shape["bytes"]
    assert all(advice["verified"] is False for advice in shape["advice"])


def test_tile_csv_is_one_row_a_shape() -> None:
    out = run("tile", SHAPE, "f32[8,3]", "-f", "csv").stdout_bytes.decode()
    records = list(csv.DictReader(io.StringIO(out)))
    assert [record["bytes"] for record in records] == ["9216", "2048"]


def test_tile_without_a_shape_is_wrong_usage() -> None:
    assert run("tile").exit_code == 2


# --- targets


def test_targets() -> None:
    lines = run("targets").output.splitlines()
    assert lines[0].split() == ["name", "kind", "memory", "allowed", "aliases"]
    assert any(line.split()[:4] == ["v5e", "tpu", "16.00GiB", "15.75GiB"] for line in lines)


def test_targets_as_data() -> None:
    document = json.loads(run("targets", "-f", "json").output)
    by_name = {target["name"]: target for target in document["targets"]}
    assert by_name["v5e"]["memory"] == 16 << 30
    assert type(by_name["v5e"]["allowed"]) is int
    records = list(csv.DictReader(io.StringIO(run("targets", "-f", "csv").stdout_bytes.decode())))
    assert len(records) == len(by_name)
    assert run("targets", "-f", "markdown").output.count("\n") == len(by_name) + 2
