"""The table of allocations on a terminal, as wide as the terminal allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show import escape, words
from xlamem.show.layout import Cell, Column, Line, Span, cells, table, widest, wrap
from xlamem.show.rows import axis_texts

if TYPE_CHECKING:
    from xlamem.report import Allocation, MemoryReport

_GAP = 2
_WIDEST_SHAPE = 60
_WIDEST_PLACE = 32
_NARROWEST_HOLDER = 24
_STACKED_HEAD = "shape, operator, source, type"


def lines(report: MemoryReport, *, width: int, top: int, indent: int = 2) -> Iterator[Line]:
    """The ``top`` largest allocations.

    Where there is room each fact has its column. Where there is not, the operator, its source line and the
    type go on lines of their own under the shape, and the narrower the terminal the fewer figures remain: a
    shape is folded, and never cut.
    """
    shown = [report.allocations[i] for i in words.ranked(report)[:top]]
    main = None if report.space is None else report.space.name
    figures = {name: [_figure(a, name) for a in shown] for name in _figures(shown, width)}
    columns = [Column("#", len(str(len(shown))) + 1, right=True)]
    for name, spans in figures.items():
        columns.append(Column(name, widest([name, *(text for text, _ in spans)]), right=True))
    room = max(width - indent - sum(column.width + _GAP for column in columns), 12)
    facts = _fact_columns(shown, room, main)
    columns += facts or [Column(_STACKED_HEAD, room)]

    yield from table(columns, (), indent=indent)
    headless = [column._replace(head="") for column in columns]
    lead = " " * (indent + sum(column.width + _GAP for column in columns if column.right))
    for number, allocation in enumerate(shown):
        row: list[Cell] = [[[(f"#{number + 1}", "dim")]]]
        row += [[[spans[number]]] for spans in figures.values()]
        if facts:
            row += [_fact(allocation, column, main) for column in facts]
        else:
            row.append(_stacked(allocation, room, main))
        yield from table(headless, [row], indent=indent)
        for remark in _remarks(allocation):
            yield from wrap(remark, width, lead)


def _figures(allocations: list[Allocation], width: int) -> list[str]:
    """The columns of figures that have something to say and room to say it."""
    names = ["size"]
    if any(a.unpadded_bytes is not None for a in allocations):
        if width >= 110:
            names.append("unpadded")
        names.append("padding")
        if width >= 70:
            names.append("expansion" if width >= 110 else "x")
    return names


def _figure(allocation: Allocation, name: str) -> Span:
    if name == "size":
        return words.size(allocation.bytes), "bold"
    if name == "unpadded":
        return words.size(allocation.unpadded_bytes), ""
    style = "yellow" if allocation.padding_bytes else "dim"
    text = words.size(allocation.padding_bytes) if name == "padding" else words.times(allocation.expansion)
    return text, style


def _fact_columns(allocations: list[Allocation], room: int, main: str | None) -> list[Column]:
    """The columns of words; empty where they do not fit beside each other."""
    widths = {
        "shape": min(widest(map(_shape, allocations)), _WIDEST_SHAPE),
        "operator": widest(map(_who, allocations)),
        "source": min(widest(map(_where, allocations)), _WIDEST_PLACE),
        "type": widest(_kind(a, main) for a in allocations),
    }
    widths = {name: max(wide, len(name)) for name, wide in widths.items() if wide}
    taken = sum(wide + _GAP for name, wide in widths.items() if name != "operator")
    rest = room - taken
    if rest < min(_NARROWEST_HOLDER, widths.get("operator", 0)):
        return []
    return [Column(name, min(rest, wide) if name == "operator" else wide) for name, wide in widths.items()]


def _fact(allocation: Allocation, column: Column, main: str | None) -> Cell:
    if column.head == "shape":
        return [[(_shape(allocation), "cyan")]]
    if column.head == "operator":
        return [[(escape.shorten(_who(allocation), column.width), "")]]
    if column.head == "source":
        return [[(escape.shorten_path(_where(allocation), column.width), "")]]
    return [[(_kind(allocation, main), "dim")]]


def _stacked(allocation: Allocation, width: int, main: str | None) -> Cell:
    who, where, kind = _who(allocation), _where(allocation), _kind(allocation, main)
    stack: Cell = [[(shape, "cyan")]] if (shape := _shape(allocation)) else []
    if who == kind:
        who = ""
    if widest(["  ".join(filter(None, (who, where, kind)))]) > width and who:
        stack.append([(escape.shorten(who, width), "")])
        who = ""
    where = escape.shorten_path(where, max(width - cells(kind) - 2, 3))
    known = "  ".join(filter(None, (who, where)))
    stack.append([(f"{known}  " if known else "", ""), (kind, "dim")])
    return stack


def _remarks(allocation: Allocation) -> Cell:
    """What stands under the row, as wide as the row."""
    found: Cell = []
    if allocation.padding_bytes:
        found += [[(escape.visible(axis), "yellow")] for axis in axis_texts(allocation.shape)]
    if allocation.tag:
        found.append([(escape.shorten(escape.visible(allocation.tag.split(". ")[0]), 100), "dim")])
    if allocation.shape_assumed:
        found.append([("no tile was printed; one is assumed", "dim")])
    return found


def _shape(allocation: Allocation) -> str:
    return "" if allocation.shape is None else escape.visible(str(allocation.shape))


def _who(allocation: Allocation) -> str:
    return escape.visible(words.holder(allocation))


def _where(allocation: Allocation) -> str:
    return escape.visible(words.place(allocation))


def _kind(allocation: Allocation, main: str | None) -> str:
    kind = escape.visible(allocation.kind)
    return kind if allocation.space == main else f"{kind} in {escape.visible(allocation.space)}"
