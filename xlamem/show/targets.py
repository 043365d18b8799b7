"""The chips that are known, in each output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape, words
from xlamem.show.layout import Column, Line, table, widest
from xlamem.show.pieces import BLANK, paragraph

if TYPE_CHECKING:
    from xlamem.targets import Device

COLUMNS = ("name", "kind", "memory", "allowed", "aliases")


def lines(devices: Sequence[Device], *, width: int) -> Iterator[Line]:
    """One line a chip."""
    facts = [
        (d.name, d.kind, words.size(d.memory), words.size(d.allowed), ", ".join(d.aliases)) for d in devices
    ]
    widths = [widest([name, *(row[i] for row in facts)]) for i, name in enumerate(COLUMNS)]
    widths[-1] = max(width - sum(widths[:-1]) - 8, 12)
    columns = [
        Column(name, wide, right=name in ("memory", "allowed"))
        for name, wide in zip(COLUMNS, widths, strict=True)
    ]
    styles = ("bold", "", "", "", "dim")
    yield from table(columns, ([[[span]] for span in zip(row, styles, strict=True)] for row in facts))
    yield BLANK
    yield from paragraph(
        "Allowed is what a program can use: on a TPU what the compiler lets it take, on a GPU what JAX's "
        "allocator takes unless told otherwise.",
        width,
        style="dim",
    )


def to_json(devices: Sequence[Device]) -> str:
    """All that is known about each; sizes are bytes."""
    from xlamem.show.json import document

    return document("targets", {"targets": [_object(device) for device in devices]})


def to_csv(devices: Sequence[Device]) -> str:
    """One row a chip."""
    from xlamem.show import csv

    return csv.table(COLUMNS, (_object(d) | {"aliases": "; ".join(d.aliases)} for d in devices))


def to_markdown(devices: Sequence[Device]) -> str:
    """A table, one row a chip."""
    from xlamem.show import markdown

    records = (
        {
            "name": escape.markdown(device.name),
            "kind": escape.markdown(device.kind),
            "memory": words.size(device.memory),
            "allowed": words.size(device.allowed),
            "aliases": escape.markdown(", ".join(device.aliases)),
        }
        for device in devices
    )
    return "\n".join(markdown.table(COLUMNS, records, frozenset({"memory", "allowed"}))) + "\n"


def _object(device: Device) -> dict[str, object]:
    return {
        "name": device.name,
        "kind": device.kind,
        "memory": device.memory,
        "allowed": device.allowed,
        "aliases": list(device.aliases),
    }
