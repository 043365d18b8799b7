from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlamem.errors import ParseError
from xlamem.units import Size, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "bytes_", "slack"),
    [
        ("12.50G", 13421772800, 5368710),  # 12.5 * 2**30; half of 0.01 GiB
        ("640.00M", 671088640, 5243),
        ("36.0K", 36864, 52),
        ("18B", 18, 0),
        ("0B", 0, 0),
        ("1.97GiB", 2115271393, 5368710),  # 1.97 * 2**30 = 2115271393.28
        ("14 GiB", 15032385536, 536870912),
        ("16g", 17179869184, 536870912),
        ("4096", 4096, 0),
    ],
)
def test_a_size_is_read_to_the_byte_with_its_precision(text: str, bytes_: int, slack: int) -> None:
    size = parse_size(text)
    assert (int(size), size.slack) == (bytes_, slack)


@pytest.mark.parametrize(
    "text", ["", "G", "12,5G", "-1G", "12.5Q", "1e9", "12.5.1G", "nan", "1\u0663G", "1\u212a"]
)
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ParseError, match="write it as 16G"):
        parse_size(text)


def test_more_than_any_memory_has_is_refused() -> None:
    assert parse_size("8E") == 2**63
    with pytest.raises(ParseError, match="more than any memory"):
        parse_size("99999999999999999999E")


def test_an_error_survives_pickling() -> None:
    with pytest.raises(ParseError) as caught:
        parse_size("12,5G")
    twin = pickle.loads(pickle.dumps(caught.value))  # our own bytes, never a stranger's
    assert (str(twin), twin.text, twin.position) == (str(caught.value), "12,5G", 0)


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KiB"),
        (13421772800, "12.50GiB"),
        (1048575, "1.00MiB"),  # would be "1024.0KiB"
        (-2048, "-2.0KiB"),
        (2**70, "1024.00EiB"),
    ],
)
def test_bytes_are_shown_with_the_compilers_number_of_decimals(n: int, text: str) -> None:
    assert format_size(n) == text


@given(st.integers(min_value=0, max_value=2**63))
def test_what_is_printed_reads_back_within_its_precision(n: int) -> None:
    assert parse_size(format_size(n)).agrees_with(n)


def test_a_size_is_an_integer_that_survives_copies() -> None:
    size = Size(10, slack=3)
    assert size + 1 == 11
    assert f"{size}" == "10"
    for twin in (copy.copy(size), pickle.loads(pickle.dumps(size))):  # our own bytes, never a stranger's
        assert (int(twin), twin.slack) == (10, 3)
