"""The chips that are known, in each output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape, words

if TYPE_CHECKING:
    from rich.console import Console

    from xlamem.targets import Device

COLUMNS = ("name", "kind", "memory", "allowed", "aliases")


def render(devices: Sequence[Device], console: Console) -> None:
    """Print one line a chip."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in COLUMNS:
        grid.add_column(name, justify="right" if name in ("memory", "allowed") else "left", overflow="fold")
    for device in devices:
        grid.add_row(
            Text(device.name, style="bold"),
            Text(device.kind),
            Text(words.size(device.memory)),
            Text(words.size(device.allowed)),
            Text(", ".join(device.aliases), style="dim"),
        )
    console.print(grid)
    console.print()
    console.print(
        Text(
            "Allowed is what a program can use: on a TPU what the compiler lets it take, on a GPU what JAX's "
            "allocator takes unless told otherwise.",
            style="dim",
        )
    )


def to_json(devices: Sequence[Device]) -> str:
    """All that is known about each; sizes are bytes."""
    from xlamem.show.json import document

    return document("targets", {"targets": [_object(device) for device in devices]})


def to_csv(devices: Sequence[Device]) -> str:
    """One row a chip."""
    from xlamem.show.csv import table

    return table(COLUMNS, (_object(d) | {"aliases": "; ".join(d.aliases)} for d in devices))


def to_markdown(devices: Sequence[Device]) -> str:
    """A table, one row a chip."""
    from xlamem.show.markdown import table

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
    return "\n".join(table(COLUMNS, records, frozenset({"memory", "allowed"}))) + "\n"


def _object(device: Device) -> dict[str, object]:
    return {
        "name": device.name,
        "kind": device.kind,
        "memory": device.memory,
        "allowed": device.allowed,
        "aliases": list(device.aliases),
    }
