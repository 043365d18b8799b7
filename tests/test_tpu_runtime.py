"""A running TPU without room: figures, and which of three kinds it is."""

from __future__ import annotations

import pytest
from damage import DAMAGE
from tpu_forms import (
    BUFFER,
    CASES,
    CODED,
    LOAD,
    LOAD_PIECES,
    OLD_PIECES,
    PIECES,
    assert_sound,
    figures,
    only,
    read,
    sizes,
)


@pytest.mark.parametrize("name", CASES)
def test_kind_and_figures(name: str) -> None:
    text, kind, program, numbers = CASES[name]
    report = only(text)
    assert (report.kind, report.program, report.severity, report.fits) == (kind, program, "error", False)
    assert report.space is not None
    assert report.space.name == "hbm"
    assert figures(report) == numbers


def test_the_code_and_the_memory_are_noted() -> None:
    assert only(CODED).notes == ("Error code E0100 RuntimeBufferAllocationFailure", "Memory 0x1x0_HBM0")
    assert "Current fragmentation: 91.1%" in only(OLD_PIECES).notes
    assert "Without fragmentation 30.10G could be reserved." in only(LOAD_PIECES).notes


def test_the_message_begins_with_the_program() -> None:
    assert only(LOAD).message == (
        "Error loading program 'jit_train_step': Attempting to reserve 6.48G at the bottom of memory. That was not "
        "possible. There are 5.91G free, 0B reserved, and 5.91G reservable"
    )


@pytest.mark.parametrize("how", [d for d in DAMAGE if not d.startswith("wrapped")])
@pytest.mark.parametrize("name", CASES)
def test_damage_changes_no_figure(name: str, how: str) -> None:
    text, kind, program, numbers = CASES[name]
    report = only(DAMAGE[how](text))
    assert (report.kind, report.program) == (kind, program)
    assert figures(report) == numbers


@pytest.mark.parametrize("name", CASES)
def test_cut_at_any_byte(name: str) -> None:
    text = CASES[name][0]
    for at in range(len(text)):
        assert_sound(text[:at])


def test_two_in_a_row_do_not_mix() -> None:
    first, second = read(BUFFER.split("There")[0] + "\n" + PIECES)
    assert figures(first) == sizes(requested="129.50M")
    assert figures(second) == sizes(requested="31.06M", free="58.64M", largest_free="30.56M")
