"""What the cache of compiles holds, in each output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show import csv, escape, markdown, words
from xlamem.show.pieces import paragraph

if TYPE_CHECKING:
    from xlamem.compiler.cache import Usage
    from xlamem.show.layout import Line

_COLUMNS = ("folder", "entries", "bytes", "limit")


def lines(usage: Usage, width: int, *, cleared: bool) -> Iterator[Line]:
    """One sentence."""
    done = "Removed" if cleared else "Kept"
    count = words.count(usage.entries, "entry", "entries")
    yield from paragraph(
        f"{done}: {count}, {words.size(usage.bytes)}, in {escape.visible(str(usage.folder))}; "
        f"at most {words.size(usage.limit)} are kept.",
        width,
    )


def to_json(usage: Usage, *, cleared: bool) -> str:
    """Sizes in bytes."""
    from xlamem.show.json import document

    return document("cache", {"cleared": cleared, **_object(usage)})


def to_csv(usage: Usage) -> str:
    """One row."""
    return csv.table(_COLUMNS, [_object(usage)])


def to_markdown(usage: Usage) -> str:
    """A table of one row."""
    record = {
        "folder": escape.markdown(str(usage.folder)),
        "entries": str(usage.entries),
        "bytes": str(usage.bytes),
        "limit": str(usage.limit),
    }
    return "\n".join(markdown.table(_COLUMNS, [record], frozenset({"entries", "bytes", "limit"}))) + "\n"


def _object(usage: Usage) -> dict[str, object]:
    return {"folder": str(usage.folder), "entries": usage.entries, "bytes": usage.bytes, "limit": usage.limit}
