from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from samples import HOSTILE, allocation, hostile, padded, short

from xlamem.explanation import explain
from xlamem.finding import Fit
from xlamem.readers import read
from xlamem.report import Source, Unparsed
from xlamem.show.terminal import render, to_text

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_whole_answer(golden: Golden, width: int) -> None:
    golden(f"explain_{width}.txt", to_text([padded(), short()], width=width))


def test_everything(golden: Golden) -> None:
    golden("explain_everything.txt", to_text([padded(), short()], everything=True))


@pytest.mark.parametrize("width", [40, 60, 200])
def test_the_first_line_is_the_answer_whole(width: int) -> None:
    text = to_text([padded()], width=width)
    assert text.split("\n", 1)[0] == padded().headline


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160, 300])
def test_no_shape_is_ever_cut(width: int) -> None:
    joined = "".join(to_text([padded()], width=width).split())
    for a in padded().report.allocations:
        if a.shape is not None and width >= 60:
            assert str(a.shape) in joined
    assert "…" not in joined


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_but_the_answer_and_code_is_wider_than_asked(width: int) -> None:
    lines = to_text([padded(), short()], width=width).splitlines()[1:]
    assert max(map(len, lines)) <= width


def test_code_to_copy_is_never_wrapped() -> None:
    explanation = padded()
    long = "x = " + " + ".join(f"part_{n}" for n in range(60))
    advice = replace(explanation.advice[0], how=long)
    assert f"{long}\n" in to_text([replace(explanation, advice=(advice,))], width=60)


def test_what_is_only_computed_says_so() -> None:
    text = to_text([padded()], width=160, everything=True)
    assert text.count("computed, not compiled") == 2
    assert text.count("measured by compiling it") == 1
    assert text.count("estimated, not compiled") == 1
    assert "changes the values computed; values differ by up to 4.0e-03" in text


def test_small_suggestions_are_counted_and_shown_on_request() -> None:
    assert "1 more suggestion not shown; --all shows all" in to_text([padded()])
    assert "not shown" not in to_text([padded()], everything=True)


def test_a_list_of_only_the_largest_says_that_sums_are_lower_bounds() -> None:
    explanation = padded()
    assert "lower bounds" in to_text([explanation])
    whole = replace(explanation, report=replace(explanation.report, partial=False))
    assert "lower bound" not in to_text([whole])


def test_top_says_what_it_left_out() -> None:
    text = to_text([padded()], top=2)
    assert "copy.1516" in text
    assert "reshape.753" not in text
    assert "3 more allocations, 640.01MiB together; --top 5 shows all" in text


def test_a_failed_check_is_shown_and_the_others_are_counted() -> None:
    text = to_text([padded()])
    assert "Does not add up: the items add up to 19.42GiB" in text
    assert "2 checks between the figures hold." in text
    assert "66.1% = unpadded" not in text


def test_lines_not_understood_are_shown_and_counted() -> None:
    explanation = padded()
    lines = tuple(Unparsed(n, f"mystery {n}") for n in range(1, 8))
    odd = replace(explanation, report=replace(explanation.report, unparsed=lines, truncated=True, times=4))
    text = to_text([odd])
    assert "7 lines of the report not understood:" in text
    assert "line 5: mystery 5" in text
    assert "mystery 6" not in text
    assert "and 2 more" in text
    assert "mystery 6" in to_text([odd], everything=True)
    assert "breaks off" in text
    assert "The input says this 4 times." in text


def test_padding_known_only_from_the_list_is_a_lower_bound() -> None:
    explanation = padded()
    space = replace(explanation.report.spaces[0], padded=None, unpadded=None, temps=None)
    text = to_text([replace(explanation, report=replace(explanation.report, spaces=(space,)))])
    assert "at least, from the list: 6.25GiB in #1" in text


def test_a_report_without_figures_is_its_headline() -> None:
    assert to_text([short()]) == f"{short().headline}\n"
    assert to_text([]) == ""


def test_allocations_of_several_spaces_say_which() -> None:
    explanation = padded()
    both = (*explanation.report.allocations, allocation("1.00M", space="vmem", label="spill"))
    text = to_text([replace(explanation, report=replace(explanation.report, allocations=both))])
    assert "temp in hbm" not in text  # that is what the report is about
    assert "temp in vmem" in text


@pytest.mark.parametrize("width", [60, 100, 200])
def test_hostile_input_is_inert_in_plain_text(width: int) -> None:
    text = to_text([hostile(), hostile()], width=width, everything=True)
    assert all(c == "\n" or c.isprintable() for c in text)
    assert "[bold red]" in text  # as it was written, not obeyed
    assert "\\x1b[31m" in text
    assert "\\u202e" in text


def test_hostile_input_is_inert_in_colour() -> None:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, color_system="truecolor", width=200, markup=False, highlight=False
    )
    render([hostile()], console)
    text = out.getvalue()
    assert "\x1b[" in text
    assert "\x1b[31m[bold" not in text
    assert not set(text) & set("\r\u202e\u2066\x9b\udcff\u200b")


def _fits(needed: int, capacities: list[int]) -> str:
    fits = tuple(Fit(f"chip{c}", needed <= c, needed << 30, c << 30, "reported") for c in capacities)
    text = to_text([replace(padded(), fits=fits)], width=400)
    return next(line for line in text.splitlines() if "as reported: " in line)


def test_where_it_fits_names_the_chips_next_to_the_border() -> None:
    assert _fits(1, [4, 2, 8]).endswith("fits all 3, from chip2 (2.00GiB) on")
    assert _fits(9, [4, 2, 8]).endswith("fits none of 3, not even chip8 (8.00GiB)")
    line = _fits(10, list(range(1, 21)))
    assert "fits chip10 (10.00GiB), " in line
    assert "chip15 (15.00GiB) and 5 larger; not chip4 (4.00GiB), " in line
    assert line.endswith("chip9 (9.00GiB) and 3 smaller")


def test_a_report_of_another_file_says_which() -> None:
    other = replace(short(), report=replace(short().report, source=Source("other.log", "x", 7)))
    text = to_text([padded(), short(), other])
    assert "  - line 12: Remat" in text
    assert "  - other.log:7: Remat" in text


def test_a_report_prints_itself_without_colour() -> None:
    assert HOSTILE not in to_text([hostile()])
    assert "\x1b" not in to_text([padded()])


@pytest.mark.parametrize("width", [100, 160])
def test_what_an_allocation_is_for_has_the_whole_row(width: int) -> None:
    log = Path(__file__).parent.parent / "fixtures" / "logs" / "0.0.42.1_v5e_pallas_vmem.log"
    text = to_text([explain(read(log))], width=width)
    assert "  input window allocation for operator input 0\n" in text
