"""One item of a TPU report's lists, from its fields to an :class:`~xlamem.report.Allocation`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from xlamem.errors import ParseError
from xlamem.readers.label import parse_label, parse_pairs
from xlamem.report import Allocation, Provenance
from xlamem.shape import Shape
from xlamem.units import SIZE_PATTERN, Size, size_from

_SIZE = re.compile(rf"\s*{SIZE_PATTERN}")
_EXTRA = re.compile(rf"\s*{SIZE_PATTERN}\s*(?:\(\s*[\d.]+x\s+expansion\s*\))?")
_TYPE = re.compile(r"\s*(HLO temp|global|overlays|scoped|reserved|arguments?|outputs?|constants?|\w+)")
_OUTPUT_LABEL = re.compile(r"Output\b")
_ARGUMENT_LABEL = re.compile(r"Argument\b")
_LINE_END = re.compile(r"\n+")

_KINDS = {
    "HLO temp": "temp",
    "global": "constant",
    "arguments": "argument",
    "argument": "argument",
    "outputs": "output",
    "output": "output",
    "constants": "constant",
}
Spans = list[tuple[int, int]]


@dataclass
class Item:
    """The fields of one item as they are read."""

    space: str
    list_kind: str | None
    line: int
    number: int | None = None
    seen: set[str] = field(default_factory=set)
    size: Size | None = None
    unpadded: Size | None = None
    extra: Size | None = None
    shape: Shape | None = None
    operator: str | None = None
    label: str | None = None
    tag: str | None = None
    type: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether there is a size, or words that name an allocation without one (lists up to 2020)."""
        return self.size is not None or (self.label is not None and self.type is not None)

    def take(self, kind: str, span: str, starts_record: Callable[[int], bool]) -> Spans:
        """Read the value of field ``kind`` from the start of ``span``; returns the parts understood.

        ``starts_record(offset)`` tells whether a logger's time stamp stood before that line of ``span``: such
        a line is never the rest of a value.
        """
        if kind in ("size", "unpadded", "extra"):
            match = (_EXTRA if kind == "extra" else _SIZE).match(span)
            if match is None:
                return []
            setattr(self, kind, size_from(match[1], match[2]))
            return [match.span()]
        if kind == "type":
            match = _TYPE.match(span)
            if match is None:
                return []
            self.type = match[1]
            return [match.span()]
        if kind == "shape":
            return self._take_shape(span)
        end = _value_end(span, starts_record)
        value = " ".join(span[:end].split())
        if value:
            setattr(self, kind, value)
        return [(0, end)]

    def _take_shape(self, span: str) -> Spans:
        start = len(span) - len(span.lstrip())
        try:
            self.shape, end = Shape.parse_prefix(span, start)
        except ParseError:
            # Broken in mid-word: shapes hold no white space that matters, save after "*/" and ",".
            joined = _LINE_END.sub("", span)
            try:
                self.shape, end = Shape.parse_prefix(joined, len(joined) - len(joined.lstrip()))
            except ParseError:
                return []
            end = _offset_with_ends(span, end)
        return [(0, end)]


def _offset_with_ends(span: str, offset: int) -> int:
    """The offset in ``span`` of the character at ``offset`` of ``span`` without its line ends."""
    passed = 0
    for at, char in enumerate(span):
        if passed == offset:
            return at
        passed += char != "\n"
    return len(span)


def _value_end(span: str, starts_record: Callable[[int], bool]) -> int:
    """Where a value of words ends: at its line's end, or later while a quote or bracket is open."""
    depth = 0
    quoted = False
    last = ""  # the last character that is no white space
    for at, char in enumerate(span):
        if char == "\n" and last:
            rest_is_blank = span[at : at + 2] in ("\n\n", "\n")
            continues = quoted or depth > 0 or last in ",=("
            if rest_is_blank or not continues or starts_record(at + 1):
                return at
        elif char == '"':
            quoted = not quoted
        elif char in "([{" and not quoted:
            depth += 1
        elif char in ")]}" and not quoted:
            depth -= 1
        if not char.isspace():
            last = char
    return len(span)


def build(item: Item, target: str | None) -> Allocation:
    """The allocation that ``item`` describes.

    The size is printed to a few digits; the shape gives it to the byte. Where both agree the exact figure
    is taken and called "computed", where they do not the printed one stands ("reported").
    """
    label = parse_label(item.label) if item.label else parse_label("")
    pairs = {**(label.metadata or {}), **(parse_pairs(item.operator) if item.operator else {})}
    shape, assumed, exact = _exact_bytes(item, target)
    size: int = item.size if item.size is not None else 0
    unpadded: int | None = item.unpadded
    provenance: Provenance = "reported"
    if exact is not None:
        size, provenance = exact, "computed"
        if shape is not None and not shape.is_tuple:
            if unpadded is None or item.unpadded.agrees_with(shape.unpadded_bytes):  # type: ignore[union-attr]
                unpadded = shape.unpadded_bytes
        elif unpadded is not None and item.size is not None and int(unpadded) == int(item.size):
            unpadded = exact
    line = pairs.get("source_line", "")
    return Allocation(
        space=item.space,
        kind=_kind(item),
        bytes=size,
        unpadded_bytes=unpadded,
        reported_bytes=item.size,
        reported_unpadded_bytes=item.unpadded,
        shape=shape,
        shape_assumed=assumed,
        name=label.name,
        opcode=label.opcode or pairs.get("op_type"),
        operands=label.operands,
        op_name=pairs.get("op_name") or None,
        label=item.label,
        tag=item.tag,
        source_file=pairs.get("source_file") or None,
        source_line=int(line) if line.isdecimal() and len(line) < 10 else None,
        provenance=provenance,
        line=item.line,
    )


def _kind(item: Item) -> str:
    if item.type is not None:
        return _KINDS.get(item.type, item.type)
    if item.label and _OUTPUT_LABEL.match(item.label):
        return "output"
    if item.label and _ARGUMENT_LABEL.match(item.label):
        return "argument"
    return "other"


def _exact_bytes(item: Item, target: str | None) -> tuple[Shape | None, bool, int | None]:
    """The shape, whether its tile was assumed, and its exact bytes if they would be printed as they were.

    A tuple's item shows its table of pointers in some versions and the sum of its parts in others. Reports
    of 2019 print no tile although memory is tiled.
    """
    shape = item.shape
    if shape is None or item.size is None:
        return shape, False, None
    candidates: list[tuple[Shape, bool, int]] = [(shape, False, shape.padded_bytes)]
    if shape.is_tuple:
        tables = [target] if target else ["v2", "v5e", "v6e"]
        candidates += [(shape, False, shape.padded_bytes_on(name)) for name in tables]
    tiled = shape.assume_tile()
    if tiled != shape:
        candidates.append((tiled, True, tiled.padded_bytes))
    for candidate, assumed, size in candidates:
        if item.size.agrees_with(size):
            return candidate, assumed, size
    return shape, False, None
