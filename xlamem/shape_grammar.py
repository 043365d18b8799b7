"""Reads element types, sizes and layouts of HLO shapes at a place in a text.

The facts about the grammar are XLA's (what its printer writes and its parser takes); white space between
tokens is allowed where XLA allows it. Every function takes the text and a position and returns what it read
and where it stopped; all are linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from xlamem.element_types import BITS, suggest
from xlamem.errors import ParseError
from xlamem.tiling import COMBINE, Layout

#: The size of an axis that has no bound, printed ``?``.
UNBOUNDED = -1

#: Tuples deeper than this are refused: XLA's own nest a handful deep, and Python's recursion is finite.
MAX_DEPTH = 100

_S = TypeVar("_S")

_LARGEST = 2**63 - 1
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGITS = re.compile(r"\d+")
_LAYOUT_START = re.compile(r" *\{(?=\s*[\d:])|\{(?=\s*(?:\}|\Z))")
_DECORATION = re.compile(r"(SC|[A-Z]+|#|\*)\s*\(")
_COMMENT = re.compile(r"\s*/\*(index=\d+)?[^*]*\*/\s*")
_LEVEL = re.compile(r"[DCSH?][+~]*")

#: The decorations of a layout in the order in which XLA prints them.
_ORDER = ("D", "T", "L", "#", "*", "E", "S", "SC", "P", "M")


def skip(text: str, pos: int) -> int:
    """The position after white space."""
    match = _SPACE.match(text, pos)
    return match.end() if match else pos


def fail(what: str, text: str, pos: int) -> NoReturn:
    """Raise the ParseError, which says so where the text simply ends too early."""
    if pos >= len(text):
        what = f"the shape is cut off: {what}"
    raise ParseError(what, text, pos)


def expect(token: str, where: str, text: str, pos: int) -> int:
    """The position after ``token`` and the white space around it."""
    pos = skip(text, pos)
    if not text.startswith(token, pos):
        fail(f"expected {token} {where}", text, pos)
    return skip(text, pos + len(token))


def number(what: str, text: str, pos: int) -> tuple[int, int]:
    """A whole number below 2**63, and the position after it."""
    match = _DIGITS.match(text, pos)
    if match is None:
        fail(f"expected {what}", text, pos)
    # Leading zeros apart, 19 digits are the most; int() of a million digits is slow or refused.
    digits = match[0].lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > _LARGEST:
        raise ParseError("a number of 2^63 or more", text, pos)
    return int(digits), match.end()


def numbers(what: str, close: str, text: str, pos: int) -> tuple[list[int], int]:
    """Numbers or ``*`` with commas between them, up to and including ``close``; maybe none."""
    found: list[int] = []
    pos = skip(text, pos)
    if text.startswith(close, pos):
        return found, pos + len(close)
    while True:
        if what == "a tile size" and text.startswith("*", pos):
            value, pos = COMBINE, pos + 1
        else:
            value, pos = number(what, text, pos)
        found.append(value)
        pos = skip(text, pos)
        if text.startswith(close, pos):
            return found, pos + len(close)
        pos = expect(",", f"or {close} after {what}", text, pos)


def read_element_type(text: str, pos: int) -> tuple[str, int]:
    """The name of an element type, and the position after it."""
    match = _WORD.match(text, pos)
    if match is None:
        fail("expected a shape: an element type such as f32, or ( for a tuple", text, pos)
    name = match[0]
    if name not in BITS:
        shown = name if len(name) <= 32 else name[:32] + "..."
        hint = suggest(name)
        what = f"no element type {shown!r}"
        fail(f"{what}; did you mean {hint}?" if hint else f"{what}; there are {', '.join(BITS)}", text, pos)
    return name, match.end()


def read_dims(text: str, pos: int) -> tuple[list[int], list[bool], int]:
    """The sizes in brackets, which of them are dynamic (``<=8``, ``?``), and the position after them."""
    dims: list[int] = []
    dynamic: list[bool] = []
    pos = expect("[", "after the element type, then the sizes: f32[8,128]", text, pos)
    while not text.startswith("]", pos):
        if dims:
            pos = expect(",", "or ] after a size", text, pos)
        if text.startswith("?", pos):
            size, bounded, pos = UNBOUNDED, False, pos + 1
        else:
            bounded = text.startswith("<=", pos)
            size, pos = number("a size, such as 8, <=8 or ?", text, pos + 2 if bounded else pos)
        dims.append(size)
        dynamic.append(bounded or size == UNBOUNDED)
        pos = skip(text, pos)
        if pos >= len(text):
            fail("expected , or ] after a size", text, pos)
    return dims, dynamic, pos + 1


def read_nested(
    text: str,
    pos: int,
    read_array: Callable[[str, int], tuple[_S, int]],
    container: Callable[[str, list[_S], bool], _S],
) -> tuple[_S, int]:
    """A shape at ``pos``: an array, a tuple of shapes, or a buffer "b(f32[8])", a mutable array.

    ``container`` makes one of "tuple" or "buffer", what is inside, and whether a ``/*index=5*/`` comment was.
    """
    # Open containers are on a stack of our own: the text decides how deep they nest.
    stack: list[tuple[str, list[_S], bool]] = []
    while True:
        if text.startswith(("(", "b("), pos):
            if len(stack) >= MAX_DEPTH:
                raise ParseError(f"tuples nested more than {MAX_DEPTH} deep", text, pos)
            kind = "tuple" if text[pos] == "(" else "buffer"
            if stack and stack[-1][0] == "buffer":
                raise ParseError("a buffer holds one array", text, pos)
            stack.append((kind, [], False))
            pos, _ = _skip_comment(text, pos + (1 if kind == "tuple" else 2))
            if kind == "buffer" or not text.startswith(")", pos):
                continue
        else:
            shape, pos = read_array(text, pos)
            if not stack:
                return shape, pos
            stack[-1][1].append(shape)
        while True:  # close what ends here
            kind, inside, annotated = stack[-1]
            after, _ = _skip_comment(text, pos)
            if kind == "tuple" and text.startswith(",", after):
                pos, comment = _skip_comment(text, after + 1)
                stack[-1] = (kind, inside, annotated or comment)
                break
            if not text.startswith(")", after):
                fail(f"expected {', or ' if kind == 'tuple' else ''}) after a shape", text, after)
            pos = after + 1
            stack.pop()
            shape = container(kind, inside, annotated)
            if not stack:
                return shape, pos
            stack[-1][1].append(shape)


def _skip_comment(text: str, pos: int) -> tuple[int, bool]:
    """The position after white space and a comment, and whether the comment was ``/*index=..*/``."""
    match = _COMMENT.match(text, pos)
    if match is None:
        return skip(text, pos), False
    return match.end(), match[1] is not None


def at_layout(text: str, pos: int) -> int | None:
    """Where the brace of a layout stands if one begins at ``pos``, else None.

    A brace may belong to whatever follows the shape, as in ``-> f32[8] {``: only one before a digit, a colon
    or its closing counterpart is a layout's.
    """
    match = _LAYOUT_START.match(text, pos)
    return None if match is None else match.end() - 1


def read_layout(text: str, start: int, rank: int) -> tuple[Layout, int]:
    """The layout, whose brace is at ``start``, of an array with ``rank`` axes; the position after it."""
    pos = skip(text, start + 1)
    order: list[int] = []
    while not text.startswith((":", "}"), pos):
        if order:
            pos = expect(",", "or : or } after an axis", text, pos)
        axis, pos = number("an axis", text, pos)
        order.append(axis)
        pos = skip(text, pos)
    if sorted(order) != list(range(rank)):
        axes = f"0 to {rank - 1}, each once" if rank else "none, for a scalar"
        raise ParseError(f"the layout must list the axes {axes}", text, start)
    fields: dict[str, object] = {"minor_to_major": tuple(order)}
    seen: list[str] = []
    if text.startswith(":", pos):
        pos = skip(text, pos + 1)
        while not text.startswith("}", pos):
            match = _DECORATION.match(text, pos)
            name = match[1] if match else ""
            if match is None or name not in _READERS:
                fail(f"expected }} or one of {'( '.join(_ORDER)}( in the layout", text, pos)
            if name in seen:
                fail(f"a second {name}(", text, pos)
            seen.append(name)
            pos = skip(text, _READERS[name](fields, text, match.end(), rank))
    if fields.get("element_bits") == 0:  # XLA's own way to say "the type's"
        fields["element_bits"] = None
    layout = Layout(**fields)  # type: ignore[arg-type]
    if seen != sorted(seen, key=_ORDER.index):
        layout = Layout(**fields, order=tuple(seen))  # type: ignore[arg-type]
    return layout, pos + 1


# Reads one decoration, whose fields go into the first argument; then the text, the position after the
# opening parenthesis, and the rank of the array. Returns the position after the decoration.
_Reader = Callable[[dict[str, object], str, int, int], int]


def _read_tiles(fields: dict[str, object], text: str, pos: int, rank: int) -> int:
    tiles = []
    while True:
        start = pos
        tile, pos = numbers("a tile size", ")", text, pos)
        if 0 in tile:
            raise ParseError("a tile size of 0", text, start)
        tiles.append(tuple(tile))
        after = skip(text, pos)
        if not text.startswith("(", after):
            fields["tiles"] = tuple(tiles)
            return pos
        pos = after + 1


def _read_splits(fields: dict[str, object], text: str, pos: int, rank: int) -> int:
    splits = []
    while True:
        pos = skip(text, pos)
        axis, after = number("an axis", text, pos)
        if axis >= rank:
            raise ParseError(f"no axis {axis} to split", text, pos)
        cuts, pos = numbers("a position", ")", text, expect(":", "after the axis", text, after))
        splits.append((axis, tuple(cuts)))
        after = skip(text, pos)
        if not text.startswith("(", after):
            fields["splits"] = tuple(splits)
            return pos
        pos = after + 1


def _read_levels(fields: dict[str, object], text: str, pos: int, rank: int) -> int:
    levels: list[str] = []
    while not text.startswith(")", pos := skip(text, pos)):
        if levels:
            pos = expect(",", "or ) after how an axis is stored", text, pos)
        match = _LEVEL.match(text, pos)
        if match is None:
            fail("expected how an axis is stored: D, C, S or H", text, pos)
        levels.append(match[0])
        pos = match.end()
    fields["dim_levels"] = tuple(levels)
    return pos + 1


def _read_physical_shape(fields: dict[str, object], text: str, pos: int, rank: int) -> int:
    depth, start = 1, pos
    for match in re.finditer(r"[()]", text[pos:]):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            fields["physical_shape"] = text[start : start + match.start()]
            return start + match.end()
    fail("expected ) after the physical shape", text, len(text))


def _number_reader(field: str, what: str) -> _Reader:
    def read(fields: dict[str, object], text: str, pos: int, rank: int) -> int:
        fields[field], pos = number(what, text, skip(text, pos))
        return expect(")", f"after {what}", text, pos)

    return read


def _type_reader(field: str) -> _Reader:
    def read(fields: dict[str, object], text: str, pos: int, rank: int) -> int:
        if text.startswith("invalid", pos):  # XLA prints this for a type that is no integer
            fields[field], pos = "invalid", pos + len("invalid")
        else:
            fields[field], pos = read_element_type(text, skip(text, pos))
        return expect(")", "after the type", text, pos)

    return read


_READERS: dict[str, _Reader] = {
    "D": _read_levels,
    "T": _read_tiles,
    "L": _number_reader("tail_alignment", "a number of elements"),
    "#": _type_reader("index_type"),
    "*": _type_reader("pointer_type"),
    "E": _number_reader("element_bits", "a number of bits"),
    "S": _number_reader("memory_space", "a memory space"),
    "SC": _read_splits,
    "P": _read_physical_shape,
    "M": _number_reader("dynamic_prefix", "a number of bytes"),
}
