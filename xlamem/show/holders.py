"""The table of allocations on a terminal, as wide as the terminal allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from xlamem.show import escape, words
from xlamem.show.rows import axis_texts

if TYPE_CHECKING:
    from xlamem.report import Allocation, MemoryReport

_GAP = 2
_WIDEST_SHAPE = 60
_WIDEST_PLACE = 32
_NARROWEST_HOLDER = 24


def table(report: MemoryReport, *, width: int, top: int) -> Table:
    """The ``top`` largest allocations.

    Where there is room each fact has its column. Where there is not, the operator, its source line and the
    type go on lines of their own under the shape, and the narrower the terminal the fewer figures remain: a
    shape is folded, and never cut.
    """
    shown = [(rank, report.allocations[i]) for rank, i in enumerate(words.ranked(report)[:top], 1)]
    several_spaces = len({a.space for _, a in shown}) > 1
    figures = {name: [_figure(a, name) for _, a in shown] for name in _figures([a for _, a in shown], width)}
    widths = {name: max(len(name), *(len(t) for t in texts)) for name, texts in figures.items()}
    grid = Table(box=None, show_edge=False, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    rank_width = len(str(len(shown))) + 1
    grid.add_column("#", justify="right", width=rank_width, no_wrap=True)
    for name, wide in widths.items():
        grid.add_column(name, justify="right", width=wide, no_wrap=True)
    room = width - rank_width - sum(wide + _GAP for wide in widths.values()) - _GAP
    columns = _columns([a for _, a in shown], room, several_spaces)
    if columns is None:
        grid.add_column("shape, operator, source, type", overflow="fold", width=max(room, 12))
    else:
        for name, column_width in columns.items():
            grid.add_column(name, overflow="fold", width=column_width)
    for row, (rank, allocation) in enumerate(shown):
        cells = [Text(f"#{rank}", style="dim"), *(texts[row] for texts in figures.values())]
        if columns is None:
            cells.append(_stacked(allocation, max(room, 12), several_spaces))
        else:
            cells += [_cell(allocation, name, columns[name], several_spaces) for name in columns]
        grid.add_row(*cells)
    return grid


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


def _figure(allocation: Allocation, name: str) -> Text:
    if name == "size":
        return Text(words.size(allocation.bytes), style="bold")
    if name == "unpadded":
        return Text(words.size(allocation.unpadded_bytes))
    style = "yellow" if allocation.padding_bytes else "dim"
    if name == "padding":
        return Text(words.size(allocation.padding_bytes), style=style)
    return Text(words.times(allocation.expansion), style=style)


def _columns(allocations: list[Allocation], room: int, several_spaces: bool) -> dict[str, int] | None:
    """The widths of the columns of words, or None where they do not fit beside each other."""
    widths = {
        "shape": min(max((len(_shape(a)) for a in allocations), default=0), _WIDEST_SHAPE),
        "operator": 0,
        "source": min(max((len(words.place(a)) for a in allocations), default=0), _WIDEST_PLACE),
        "type": max((len(_kind(a, several_spaces)) for a in allocations), default=0),
    }
    widths = {
        name: max(wide, len(name)) if wide or name == "operator" else 0 for name, wide in widths.items()
    }
    rest = room - sum(wide + _GAP for name, wide in widths.items() if wide and name != "operator")
    if rest < _NARROWEST_HOLDER:
        return None
    longest = max((len(escape.visible(words.holder(a))) for a in allocations), default=0)
    widths["operator"] = min(rest, max(longest, len("operator")))
    return {name: wide for name, wide in widths.items() if wide}


def _shape(allocation: Allocation) -> str:
    return "" if allocation.shape is None else escape.visible(str(allocation.shape))


def _kind(allocation: Allocation, several_spaces: bool) -> str:
    kind = escape.visible(allocation.kind)
    return f"{kind} in {escape.visible(allocation.space)}" if several_spaces else kind


def _cell(allocation: Allocation, name: str, width: int, several_spaces: bool) -> Text:
    if name == "shape":
        return _with_axes(allocation, Text(_shape(allocation), style="cyan"))
    if name == "operator":
        return Text(escape.shorten(escape.visible(words.holder(allocation)), width))
    if name == "source":
        return Text(escape.shorten_path(escape.visible(words.place(allocation)), width))
    return Text(_kind(allocation, several_spaces), style="dim")


def _stacked(allocation: Allocation, width: int, several_spaces: bool) -> Text:
    text = Text()
    if shape := _shape(allocation):
        text.append(f"{shape}\n", style="cyan")
    kind = _kind(allocation, several_spaces)
    who = escape.visible(words.holder(allocation))
    where = escape.visible(words.place(allocation))
    if who == kind:
        who = ""
    facts = [part for part in (who, where, kind) if part]
    if sum(map(len, facts)) + 2 * (len(facts) - 1) > width:
        facts = [escape.shorten(who, width), escape.shorten_path(where, width - len(kind) - 2)]
        if facts[0]:
            text.append(f"{facts.pop(0)}\n")
        facts = [part for part in (facts[-1], kind) if part]
    text.append("  ".join(facts), style="dim" if len(facts) == 1 else "")
    return _with_axes(allocation, text)


def _with_axes(allocation: Allocation, text: Text) -> Text:
    if allocation.padding_bytes:
        for axis in axis_texts(allocation.shape):
            text.append(f"\n{escape.visible(axis)}", style="yellow")
    if allocation.shape_assumed:
        text.append("\nno tile was printed; one is assumed", style="dim")
    return text
