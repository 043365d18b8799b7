from __future__ import annotations

import pytest
from damage import DAMAGE

from xlamem.readers.lines import normalise, strip_prefix, wrap_width

LINE = "Total hbm usage >= 26.50G:"


@pytest.mark.parametrize(
    "prefix",
    [
        "E1130 16:17:00.193061   11420 file.cc:3781] ",
        "W0000 00:00:1756998431.440298    5182 file.cc:12] ",
        "2020-05-04 09:05:40.719745: E    1578 path/to/file.cc:76] ",
        "(EngineCore pid=1) ERROR 06-03 07:41:11 [core.py:1184] ",
        "(Worker pid=489) ",
        "(raylet, pid=12, ip=10.0.0.2) ",
        "qwen3-1  | ",
        "> > ",
        "E   ",
        "[rank 3]: ",
        "[pod/trainer-0/main] ",
        "7: ",
        "worker-12: ",
        "t1v-n-abc123-w-0: ",
        "2025-06-03T07:41:11.123Z ",
        "2025-06-03 07:41:11,123 - ERROR - ",
        "Nov 30 16:17:00 node7 trainer[331]: ",
        "ERROR:absl:",
    ],
)
def test_prefixes_of_users_tools_are_taken_away(prefix: str) -> None:
    assert strip_prefix(prefix + LINE)[0] == LINE


@pytest.mark.parametrize(
    "line",
    [
        "     Shape: f32[409600,1,64,64]{0,1,3,2:T(2,128)}",
        "  1. Size: 12.50G",
        '     Operator: op_name="jit(f)/[a] b: c"',
        "    reserved        529.00M",
        "     XLA label: %copy.1 = f32[8]{0} copy(f32[8]{0} %x)",
    ],
)
def test_lines_of_a_report_are_left_alone(line: str) -> None:
    assert strip_prefix(line) == (line, False, "")


@pytest.mark.parametrize(
    ("prefix", "who"),
    [
        ("(Worker pid=489) ", "Worker pid=489"),
        ("[rank 3]: ", "rank 3"),
        ("worker-12: ", "worker-12"),
        ("7: ", "7"),
        ("qwen3-1  | ", "qwen3-1"),
        ("(EngineCore pid=1) ERROR 06-03 07:41:11 [core.py:1184] ", "EngineCore pid=1"),
        ("E1130 16:17:00.193061   11420 file.cc:3781] ", ""),
        ("ERROR:absl:", ""),
        ("> ", ""),
    ],
)
def test_who_speaks_is_remembered(prefix: str, who: str) -> None:
    assert strip_prefix(prefix + LINE)[2] == who


def test_every_character_knows_its_line() -> None:
    lines = normalise(
        'first\n{"m": "a\\n\\nTotal hbm usage >= 1.00G:\\n  reserved 1.00M"}\nlast', first_line=41
    )
    at = lines.text.index("reserved")
    assert lines.number_at(at) == 42
    assert lines.number_at(lines.text.index("last")) == 43


def test_the_status_payload_is_no_text() -> None:
    text = r"""x [type.googleapis.com/a.B='\x08Ran out of memory in [\'w\'].\n...[truncated]'] y"""
    assert normalise(text).text == "x  y"


def test_the_wrap_width_is_found_only_where_lines_were_broken() -> None:
    text = "\n".join(["word " * 60, "short", "another " * 40])
    assert wrap_width(text) is None
    assert wrap_width(DAMAGE["wrapped at 80"](text)) == 80
