from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xlamem.show.layout import Cell, Column, cells, table, text_of, wrap

TEXT = st.text(
    st.sampled_from("ab ,.日本é") | st.characters(codec="utf-8", categories=["L", "N"]), max_size=80
)


@given(st.lists(st.tuples(TEXT, st.sampled_from(["", "bold"])), max_size=4), st.integers(10, 60))
def test_wrapping_loses_nothing_and_keeps_the_width(spans: list[tuple[str, str]], width: int) -> None:
    lines = list(wrap(spans, width))
    whole = "".join(text for text, _ in spans)
    shown = "".join(text for line in lines for text, _ in line)
    assert shown.replace(" ", "") == whole.replace(" ", "")
    assert all(cells("".join(text for text, _ in line)) <= width for line in lines)
    bold = "".join(text for line in lines for text, style in line if style)
    assert bold.replace(" ", "") == "".join(text for text, style in spans if style).replace(" ", "")


def test_wrapping_breaks_at_spaces_and_within_a_word_only_if_it_must() -> None:
    assert text_of(wrap([("one two three", "")], 12, "- ")) == "- one two\n  three\n"
    assert text_of(wrap([("0123456789abcdef", "")], 10)) == "0123456789\nabcdef\n"
    assert text_of(wrap([("", "")], 10)) == "\n"


def test_a_wide_character_takes_two_columns() -> None:
    assert cells("日本") == 4
    assert cells("e\u0301") == 1
    assert text_of(wrap([("日" * 6, "")], 10)) == "日日日日日\n日\n"


def test_a_table_aligns_and_leaves_no_space_at_the_end() -> None:
    columns = [Column("n", 3, right=True), Column("name", 6)]
    rows: list[list[Cell]] = [[[[("1", "")]], [[("a b c d e", "")], [("f", "")]]], [[[("22", "")]], [[]]]]
    assert text_of(table(columns, rows, indent=1)) == "   n  name\n   1  a b c\n      d e\n      f\n  22\n"
