"""Printed sizes and bytes.

XLA prints sizes in two styles, both binary: the TPU compiler writes ``12.50G``, ``640.00M``, ``36.0K``,
``18B``; everything else writes ``12.50GiB``, ``6.0KiB``. Two decimals from M up, one for K. A printed
figure is therefore known only to half of its last digit: ``12.50G`` is 12.5 GiB give or take 5 MiB.
:class:`Size` is an integer number of bytes that remembers this.
"""

from __future__ import annotations

import re
from operator import index

from xlamem.errors import InputError, ParseError

_EXPONENT = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}

#: One printed size, for use inside larger patterns; groups: number, unit. A number without a unit is none: it
#: may be the rest of a size that was cut.
SIZE_PATTERN = r"([0-9]{1,20}(?:\.[0-9]{1,9})?) ?([KMGTPE](?:i?B)?|B)(?![a-z0-9])"

# What people type is laxer than what compilers print: "14 gib", "16g", "1e9" is refused.
_TYPED = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,9})?)\s*([kmgtpe]?)(?:i?b)?\s*", re.IGNORECASE | re.ASCII)

#: 8 EiB: what addresses of 64 bits reach.
_MOST = 1 << 63


class Size(int):
    """A number of bytes read off a text, with how far off it can be.

    ``slack`` is in bytes: half of the last printed digit, 0 when the text gave plain bytes. Arithmetic
    gives plain integers; ask each operand for its slack when comparing sums.
    """

    slack: int

    def __new__(cls, value: int, slack: int = 0) -> Size:
        self = super().__new__(cls, value)
        self.slack = slack
        return self

    def __reduce__(self) -> tuple[type[Size], tuple[int, int]]:
        return Size, (int(self), self.slack)

    def __repr__(self) -> str:
        return f"Size({int(self)}, slack={self.slack})"

    def __str__(self) -> str:
        return str(int(self))

    def agrees_with(self, exact: int) -> bool:
        """Whether ``exact`` bytes would have been printed like this.

        One unit of the last digit is allowed rather than half: the compiler rounds some figures twice.
        """
        return abs(int(self) - exact) <= 2 * self.slack


def slack_of(value: int | None) -> int:
    """How far off ``value`` can be, in bytes: 0 for an exact number."""
    return value.slack if isinstance(value, Size) else 0


def size_from(number: str, unit: str) -> Size:
    """The :class:`Size` of a matched ``number`` ("12.50") and ``unit`` ("G", "GiB", "B" or "").

    Computed in integers: floats lose bytes from P on.
    """
    scale = 1024 ** _EXPONENT[unit[:1].upper()]
    whole, _, fraction = number.partition(".")
    digits = 10 ** len(fraction)
    value = (int(whole + fraction) * scale + digits // 2) // digits
    return Size(value, 0 if scale == 1 else -(-scale // (2 * digits)))


def parse_size(text: str) -> Size:
    """The bytes of a size as XLA prints it or a person types it: "12.50G", "36.0K", "14 GiB", "512".

    All units are binary (1K = 1024 bytes), whatever they are called.

    Raises:
        ParseError: ``text`` is not a size, or one that no memory has.
    """
    match = _TYPED.fullmatch(text)
    if match is None:
        raise ParseError("not a size; write it as 16G, 640M, 14 GiB or a number of bytes", text, 0)
    size = size_from(match[1], match[2])
    if size > _MOST:
        raise ParseError("more than any memory has", text, 0)
    return size


def parse_capacity(given: int | str) -> int:
    """A memory's bytes, given as a number of them or as :func:`parse_size` reads it.

    Raises:
        InputError: it is neither, or no memory has so much, or so little.
    """
    try:
        size = int(parse_size(given)) if isinstance(given, str) else index(given)
    except TypeError:
        raise InputError(f"not a size: {given!r}; give bytes as an int, or text such as '16G'") from None
    if isinstance(given, bool) or not 0 < size <= _MOST:
        raise InputError(f"no memory has {given} bytes: give more than 0, and no more than 8 EiB")
    return size


def format_size(n: int) -> str:
    """``n`` bytes for people: "12.50GiB", "36.0KiB", "18B"; binary, with XLA's own number of decimals."""
    sign, n = ("-", -int(n)) if n < 0 else ("", int(n))
    if n < 1024:
        return f"{sign}{n}B"
    for unit, exponent in (("K", 1), ("M", 2), ("G", 3), ("T", 4), ("P", 5), ("E", 6)):
        decimals = 1 if unit == "K" else 2
        shown = f"{n / 1024**exponent:.{decimals}f}"
        if float(shown) < 1024 or unit == "E":
            return f"{sign}{shown}{unit}iB"
    raise AssertionError
