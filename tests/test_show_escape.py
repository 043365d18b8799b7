from __future__ import annotations

import pytest

from xlamem.show import escape


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, 64×64 für テスト", "plain text, 64×64 für テスト"),
        ("\x1b[31mred\r\n\t\0\x7f\x9b", "\\x1b[31mred\\r\\n\\t\\x00\\x7f\\x9b"),
        ("a\u202eb\u2066c\u200bd\u2028e\ufeff", "a\\u202eb\\u2066c\\u200bd\\u2028e\\ufeff"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_has_no_picture_is_spelled_out(text: str, shown: str) -> None:
    assert escape.visible(text) == shown


def test_lines_keep_their_newlines() -> None:
    assert escape.visible_lines("a\n\tb\x1b\n") == ["a", "    b\\x1b", ""]


@pytest.mark.parametrize("width", range(12))
def test_shorten_keeps_both_ends_and_the_width(width: int) -> None:
    short = escape.shorten("jit(step)/main/conv", width)
    assert len(short) == width
    assert escape.shorten("0123456789", 10) == "0123456789"
    assert escape.shorten("0123456789", 9) == "012...789"
    assert len(escape.shorten_path("/a/long/path/train.py:12", max(width, 3))) == max(width, 3)


def test_shorten_path_keeps_the_file() -> None:
    assert escape.shorten_path("/home/someone/train.py:12", 14) == "...train.py:12"


@pytest.mark.parametrize("start", list("=+-@\t\r＝＋－＠"))
def test_no_cell_is_a_formula(start: str) -> None:
    assert escape.spreadsheet(f"{start}cmd()")[0] in "'\\"
    assert escape.spreadsheet("") == ""
    assert escape.spreadsheet("%copy = f32[]") == "%copy = f32[]"


def test_markdown_shows_the_characters_themselves() -> None:
    text = escape.markdown("<b>*a*_|`[x](y)#1 @you & co")
    assert escape.markdown("> quoted") == "\\> quoted"
    assert escape.markdown("") == ""
    assert text == "&#60;b>\\*a\\*\\_\\|\\`\\[x\\](y)\\#1 &#64;you &#38; co"


def test_a_code_span_survives_backticks_and_pipes() -> None:
    assert escape.markdown_code("a``b") == "```a``b```"
    assert escape.markdown_code("`a") == "`` `a ``"
    assert escape.markdown_code("a|b", in_table=True) == "`a\\|b`"
    assert escape.markdown_block("```\nx") == ["````python", "```", "x", "````"]


def test_lone_surrogates_are_replaced() -> None:
    assert escape.unicode("a\udcffb") == "a?b"
    assert escape.unicode("für 😀") == "für 😀"
