"""The difference between two reports as text, JSON, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show import csv, escape, json, markdown
from xlamem.show.layout import wrap
from xlamem.units import format_size

if TYPE_CHECKING:
    from xlamem.analysis.diff import Diff, RowChange, SizeChange
    from xlamem.report import MemoryReport
    from xlamem.show.layout import Line

_COLUMNS = (
    "what", "count", "before", "after", "change", "space", "kind", "op_name", "name", "shape_before",
    "shape_after", "owner", "source_file", "source_line",
)  # fmt: skip
_PARTIAL = "what is new may only have been too small before."
_SHOWN = ("", "before", "after", "change")


def to_json(found: Diff) -> str:
    """The whole difference; all sizes bytes."""
    spaces: dict[str, dict[str, object]] = {}
    for size in found.sizes:
        spaces.setdefault(size.space, {})[size.name] = {
            "before": _plain(size.before),
            "after": _plain(size.after),
            "change": size.change,
        }
    content: dict[str, object] = {
        "before": _side(found.before),
        "after": _side(found.after),
        "verdict_changed": found.verdict_changed,
        "complete": found.complete,
        "budget": found.budget,
        "over_budget": found.over_budget,
        "spaces": spaces,
        "changes": [_row(row) for row in found.rows],
    }
    return json.document("diff", content)


def to_csv(found: Diff) -> str:
    """One row a change."""
    return csv.table(_COLUMNS, [_row(row) for row in found.rows])


def lines(found: Diff, width: int, top: int) -> Iterator[Line]:
    """The answer for a terminal of ``width`` columns."""
    # The answer stays on one line, however long: `| head -1` is how many people will read it.
    yield [(_headline(found), "bold")]
    sizes = [
        [f"{s.space} {s.name}", _size(s.before), _size(s.after), signed(s.change)] for s in _changed(found)
    ]
    if sizes:
        yield []
        yield from _aligned([list(_SHOWN), *sizes], width)
    if found.rows:
        yield []
        yield from _aligned([[*_SHOWN, "shape", "operator"], *map(_shown, found.rows[:top])], width)
    elif found.complete and not any(size.change for size in found.sizes):
        yield from wrap([("Nothing changed, in total or in any row.", "")], width)
    if len(found.rows) > top:
        yield [(f"{len(found.rows) - top} smaller changes are left out.", "")]
    if not found.complete:
        yield []
        yield from wrap([(_incomplete(found), "")], width)


def _incomplete(found: Diff) -> str:
    if not found.before.allocations or not found.after.allocations:
        return "One of the two lists nothing: what changed is only known in total."
    return f"At least one report lists only its largest items: {_PARTIAL}"


def to_markdown(found: Diff, top: int) -> str:
    """For issues and pull requests."""
    return "\n".join(_markdown(found, top)) + "\n"


def signed(change: int | None) -> str:
    """A change of size with its sign: "+1.00GiB", "-512B", "=" for none, "" where not known."""
    if change is None:
        return ""
    return "=" if change == 0 else f"{'+' if change > 0 else '-'}{format_size(abs(change))}"


def _markdown(found: Diff, top: int) -> Iterator[str]:
    yield f"**{escape.markdown(_headline(found))}**"
    yield ""
    sizes = [
        dict(
            zip(
                _SHOWN,
                (f"{s.space} {s.name}", _size(s.before), _size(s.after), signed(s.change)),
                strict=True,
            )
        )
        for s in _changed(found)
    ]
    yield from markdown.table(_SHOWN, sizes, frozenset(_SHOWN[1:]))
    if found.rows:
        columns = ("before", "after", "change", "what")
        yield ""
        rows = [_shown(row) for row in found.rows[:top]]
        records = [
            {
                "before": r[1],
                "after": r[2],
                "change": r[3],
                "what": f"{r[0]}: {escape.markdown('  '.join(filter(None, r[4:])))}",
            }
            for r in rows
        ]
        yield from markdown.table(columns, records, frozenset(columns[:3]))
    if not found.complete:
        yield ""
        yield _incomplete(found)


def _changed(found: Diff) -> list[SizeChange]:
    """The sizes to show: all that changed of the space that it is about, of others what is used in all."""
    main = next((r.space.name for r in (found.after, found.before) if r.space is not None), None)
    return [
        s
        for s in found.sizes
        if (s.change and (s.space == main or s.name == "used"))
        or (s.space == main and s.name in ("used", "capacity"))
    ]


def _headline(found: Diff) -> str:
    used = next((s for s in found.sizes if s.name == "used" and s.change is not None), None)
    if used is None:
        change = "The two reports have no total in common"
    elif not used.change:
        change = f"{used.space.upper()}: {_size(used.after)} as before"
    else:
        more = "more" if used.change > 0 else "less"
        by = format_size(abs(used.change))
        change = f"{used.space.upper()}: {by} {more} ({_size(used.before)} -> {_size(used.after)})"
    if found.verdict_changed:
        change += "; it fits now" if found.after.fits else "; it fitted before and no longer does"
    elif found.after.fits is False:
        change += "; it does not fit, before and after" if found.before.fits is False else "; it does not fit"
    if found.budget is not None and found.over_budget is not None:
        budget = format_size(found.budget)
        if found.over_budget:
            change += f"; over the budget of {budget} by {format_size(found.over_budget)}"
        else:
            change += f"; within the budget of {budget}"
    return change


def _shown(row: RowChange) -> list[str]:
    a = row.row
    times = f"{row.count}x " if row.count > 1 else ""
    before = format_size(row.before) if row.old is not None else ""
    after = format_size(row.after) if row.new is not None else ""
    name = a.op_name or a.name or a.label or a.kind
    return [row.what, before, after, signed(row.change), f"{times}{_shapes(row)}", name]


def _shapes(row: RowChange) -> str:
    """The shape before and after; layouts only where nothing else differs."""
    shapes = [x.shape for x in (row.old, row.new) if x is not None and x.shape is not None]
    bare = list(dict.fromkeys(str(shape.without_layout()) for shape in shapes))
    whole = list(dict.fromkeys(str(shape) for shape in shapes))
    return " -> ".join(whole if len(bare) == 1 and len(whole) == 2 else bare)


def _row(row: RowChange) -> dict[str, object]:
    a = row.row
    return {
        "what": row.what,
        "count": row.count,
        "before": row.before,
        "after": row.after,
        "change": row.change,
        "space": a.space,
        "kind": a.kind,
        "op_name": a.op_name,
        "name": a.name,
        "shape_before": None if row.old is None or row.old.shape is None else str(row.old.shape),
        "shape_after": None if row.new is None or row.new.shape is None else str(row.new.shape),
        "owner": a.owner,
        "source_file": a.source_file,
        "source_line": a.source_line,
    }


def _side(report: MemoryReport) -> dict[str, object]:
    return {
        "source": {"name": report.source.name, "format": report.source.format},
        "program": report.program,
        "target": None if report.target is None else report.target.name,
        "fits": report.fits,
        "provenance": report.provenance,
    }


def _plain(size: int | None) -> int | None:
    return None if size is None else int(size)


def _size(size: int | None) -> str:
    return "?" if size is None else format_size(int(size))


def _aligned(rows: list[list[str]], width: int) -> Iterator[Line]:
    """Rows as columns: the first to the left, figures to the right, the shape, and the name in what room is left."""
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    room = max(width - sum(widths) - 8, 24)
    names = max((len(row[5]) for row in rows if len(row) > 4), default=0)
    shapes = max((len(row[4]) for row in rows if len(row) > 4), default=0)
    shapes = min(shapes, room - 2 - min(names, room * 2 // 5))
    for row in rows:
        figures = [row[i].rjust(widths[i]) for i in (1, 2, 3)]
        rest = ""
        if len(row) > 4:
            shape = escape.shorten(escape.visible(row[4]), shapes)
            name = escape.shorten(escape.visible(row[5]), max(room - len(shape.ljust(shapes)) - 2, 8))
            rest = f"{shape.ljust(shapes)}  {name}"
        style = "red" if row[3].startswith("+") else "green" if row[3].startswith("-") else ""
        yield [
            ("  ".join([row[0].ljust(widths[0]), *figures[:2]]) + "  ", ""),
            (figures[2], style),
            (f"  {rest}" if rest else "", ""),
        ]
