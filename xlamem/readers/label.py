"""The two descriptions of an instruction inside a TPU report: its ``XLA label`` and its ``Operator``.

A label is the beginning of the instruction's HLO text: with types and ``%`` until 2021
(``%copy.1 = f32[8]{0} copy(f32[8]{0} %x)``), without them since (``copy.1 = copy(x)``), often cut with
``...``. Some labels are only words ("overlays", "constant literal").
"""

from __future__ import annotations

import re
from typing import NamedTuple

from xlamem.errors import ParseError
from xlamem.report import Operand
from xlamem.shape import Shape

_NAME = re.compile(r"\s*(?:ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_OPERAND_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*)\s*$")
# A value ends at the quote before the next key or the end: op names hold quotes of their own.
_PAIR = re.compile(r'\b(\w+)=(?:"(.*?)"(?=\s+\w+=|\s*[}\]]|\s*$)|"(.*)$|([^\s"{}]+))', re.DOTALL)
_METADATA = re.compile(r"(?<!\w)metadata=\{([^{}]*)")


class Label(NamedTuple):
    """What a label says: the instruction's name, opcode and operands, its shape if printed, its metadata."""

    name: str | None = None
    opcode: str | None = None
    operands: tuple[Operand, ...] = ()
    shape: Shape | None = None
    metadata: dict[str, str] | None = None


def parse_label(text: str) -> Label:
    """Read a label, whole or cut; words that are no instruction give an empty :class:`Label`."""
    head = _NAME.match(text)
    if head is None:
        return Label()
    at = head.end()
    shape: Shape | None = None
    opcode = _OPCODE.match(text, at)
    if opcode is None:
        try:
            shape, at = Shape.parse_prefix(text, at)
        except ParseError:
            return Label(name=head[1])
        opcode = _OPCODE.match(text, at)
        if opcode is None:
            return Label(name=head[1], shape=shape)
    found = _METADATA.search(text, opcode.end())
    return Label(
        name=head[1],
        opcode=opcode[1],
        operands=_operands(text, opcode.end()),
        shape=shape,
        metadata=parse_pairs(found[1]) if found else None,
    )


def parse_pairs(text: str) -> dict[str, str]:
    """The ``key="value"`` pairs of an ``Operator:`` line or of ``metadata={...}``, cut or whole."""
    pairs: dict[str, str] = {}
    for match in _PAIR.finditer(text):
        value = next((v for v in match.groups()[1:] if v is not None), "")
        pairs.setdefault(match[1], value)
    return pairs


def _operands(text: str, start: int) -> tuple[Operand, ...]:
    """The operands between ``start`` and the matching parenthesis; elided ones (``...(+10)``) are missing."""
    depth = 0
    begin = start
    found: list[Operand] = []
    for at in range(start, len(text)):
        char = text[at]
        if char in "([{":
            depth += 1
        elif char in ")]}" and depth:
            depth -= 1
        elif depth == 0 and char in ",)":
            operand = _operand(text[begin:at])
            if operand is not None:
                found.append(operand)
            begin = at + 1
            if char == ")":
                break
    return tuple(found)


def _operand(text: str) -> Operand | None:
    text = text.strip()
    shape: Shape | None = None
    if "[" in text or text.startswith("("):
        try:
            shape, end = Shape.parse_prefix(text, 0)
        except ParseError:
            return None
        text = text[end:].strip()
    if text.startswith("..."):
        return None
    name = _OPERAND_NAME.match(text)
    if name is not None:
        return Operand(name[1], shape)
    return Operand("", shape) if shape is not None else None
