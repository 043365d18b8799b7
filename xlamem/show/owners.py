"""Whose the bytes at the peak are: the owners, the user's names below each, and the source lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from xlamem.show import escape, words
from xlamem.show.layout import Column, Line, table, widest, wrap
from xlamem.show.pieces import title

if TYPE_CHECKING:
    from xlamem.finding import Node, Peak

#: Below an owner, names with less than this share of the peak are not shown unless all are asked for.
_SHARE = 0.05
_NAMES = 4
_LINES = 5
#: How deep the trees are shown when all is asked for: jit, transform, module, layer, operator.
_DEPTH = 6
_ALL_SHARE = 0.001

_HOW = {
    "name": "judged from their names",
    "trace": "from op_names and live ranges",
    "instruction": "told by the instruction",
}


class Branch(NamedTuple):
    """One row: how deep it is in the tree, what it is called, its bytes and how many of them are padding."""

    depth: int
    name: str
    bytes: int
    padding: int
    remark: str = ""


def by_owner(peak: Peak, *, everything: bool) -> list[Branch]:
    """The owners, largest first, each with the names below it that hold most."""
    rows: list[Branch] = []
    for owner in peak.owners.children:
        rows.append(Branch(0, owner.name, owner.bytes, owner.padding, _HOW.get(owner.known or "", "")))
        rows += _below(owner, 1, peak.live, everything)
    return rows


def by_source(peak: Peak, *, everything: bool) -> list[Branch]:
    """The source lines, largest first: "train.py:12"."""
    lines = []
    for file in peak.sources.children:
        for line in file.children:
            place = f"{file.name}:{line.name.removeprefix('line ')}"
            lines.append(Branch(0, place, line.bytes, line.padding))
        if not file.children:
            lines.append(Branch(0, file.name, file.bytes, file.padding))
    lines.sort(key=lambda row: -row.bytes)
    return lines if everything else lines[:_LINES]


def _below(node: Node, depth: int, whole: int, everything: bool) -> Iterator[Branch]:
    """What is below ``node``; a name with a single one below it is joined to that."""
    least = (_ALL_SHARE if everything else _SHARE) * whole
    shown = [child for child in node.children if child.bytes >= least]
    if not everything:
        shown = shown[:_NAMES]
    for child in shown:
        name, end = _joined(child)
        yield Branch(depth, name, child.bytes, child.padding)
        if everything and depth < _DEPTH:
            yield from _below(end, depth + 1, whole, everything)


def _joined(node: Node) -> tuple[str, Node]:
    """The name of ``node`` with those below it as long as each has just one, and the last of these."""
    name = node.name
    while len(node.children) == 1 and node.children[0].bytes == node.bytes:
        node = node.children[0]
        # Parts of an argument's path stick together, "state" and ".params"; scopes have slashes between them.
        name += node.name if node.name[:1] in (".", "[") else f"/{node.name}"
    return name, node


def lines(peak: Peak, *, width: int, everything: bool) -> Iterator[Line]:
    """Both as tables."""
    yield from wrap(title("Whose it is", f"the {words.size(peak.live)} at the peak"), width)
    yield from _table(by_owner(peak, everything=everything), peak.live, "owner", width)
    sources = by_source(peak, everything=everything)
    if [row.name for row in sources] != ["(no source)"]:
        yield []
        yield from wrap(title("Where it is made", "source lines, of what is alive at the peak"), width)
        yield from _table(sources, peak.live, "source", width)


def _table(rows: list[Branch], whole: int, head: str, width: int) -> Iterator[Line]:
    padded = any(row.padding for row in rows)
    columns = [
        Column("size", widest(["size", *(words.size(row.bytes) for row in rows)]), right=True),
        Column("share", 6, right=True),
    ]
    if padded:
        columns.append(
            Column("padding", widest(["padding", *(words.size(row.padding) for row in rows)]), right=True)
        )
    room = max(width - 2 - sum(column.width + 2 for column in columns), 20)
    columns.append(Column(head, room))
    yield from table(columns, (_cells(row, whole, padded, room) for row in rows), indent=2)


def _cells(row: Branch, whole: int, padded: bool, room: int) -> list[list[list[tuple[str, str]]]]:
    indent = "  " * row.depth
    name = escape.visible(row.name)
    remark = f"  {row.remark}" if row.remark and len(indent + name + row.remark) + 2 <= room else ""
    name = (
        escape.shorten_path(name, room - len(indent))
        if not row.depth
        else escape.shorten(name, room - len(indent))
    )
    figures = [
        [[(words.size(row.bytes), "" if row.depth else "bold")]],
        [[(words.percent(row.bytes, whole), "")]],
    ]
    if padded:
        figures.append([[(words.size(row.padding), "yellow" if row.padding else "dim")]])
    return [*figures, [[(indent + name, "dim" if row.depth else ""), (remark, "dim")]]]
