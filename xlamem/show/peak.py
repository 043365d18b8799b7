"""The peak: the step of the program that needs most, how much is alive there, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xlamem.show import escape, words
from xlamem.show.layout import Column, Line, table, widest, wrap
from xlamem.show.pieces import paragraph, title

if TYPE_CHECKING:
    from xlamem.finding import Peak
    from xlamem.report import Buffer


#: A value with less than this share of the peak is not worth naming.
_TRACE = 0.001


def where(peak: Peak) -> str:
    """ "step 84 of 154, fusion.19.remat": steps are counted from 1."""
    return f"step {peak.position + 1} of {peak.steps}, {peak.instruction}"


def whence(peak: Peak) -> str:
    """What the user knows of that instruction: its op_name and its source line; "" for nothing."""
    place = "" if peak.source_file is None else peak.source_file
    if place and peak.source_line is not None:
        place += f":{peak.source_line}"
    return "  ".join(filter(None, (peak.op_name, place)))


def sentences(peak: Peak) -> list[str]:
    """How much is alive there, and how many of the temporary values."""
    least = "at most " if peak.provenance == "estimated" else ""
    text = f"{words.size(peak.live)} are alive: {words.size(peak.unpadded)} of data"
    text += f" and {words.size(peak.padding)} of padding." if peak.padding else ", without padding."
    if least:
        text = f"At most {text}"
    if peak.fragmentation:
        text += (
            f" {words.size(peak.fragmentation)} more are holes in the heap of temporaries (fragmentation)."
        )
    found = [text]
    count = peak.alive + len(peak.others)
    if count == 1:
        found.append(f"The only temporary value is {'not ' if peak.others else ''}alive there.")
    elif count and not peak.others:
        found.append(f"All {count} temporary values are alive there.")
    elif count:
        first = peak.others[0]
        text = f"Of {count} temporary values {peak.alive} are alive there"
        if first.bytes >= _TRACE * peak.live:
            shape = first.name if first.shape is None else str(first.shape)
            text += f"; the largest that is not is {shape} ({words.size(first.bytes)}{_steps(first)})"
        found.append(f"{text}.")
    return found


def _steps(value: Buffer) -> str:
    return "" if value.live is None else f", needed in steps {value.live[0] + 1} to {value.live[1] + 1}"


def lines(peak: Peak, *, width: int, top: int, everything: bool) -> Iterator[Line]:
    """The section; with ``everything`` also the ``top`` largest temporary values that are not alive there."""
    yield from wrap(title("At the peak", where(peak)), width)
    if known := whence(peak):
        yield from paragraph(known, width, indent=2, style="cyan")
    for sentence in sentences(peak):
        yield from paragraph(sentence, width, indent=2)
    if everything and peak.others:
        yield []
        yield from wrap(
            title(
                "Not alive at the peak",
                f"{words.count(len(peak.others), 'temporary value')}, the largest first",
            ),
            width,
        )
        yield from _others(peak.others[:top], width)


def _others(values: Sequence[Buffer], width: int) -> Iterator[Line]:
    steps = [f"{v.live[0] + 1}-{v.live[1] + 1}" if v.live else "" for v in values]
    columns = [
        Column("size", widest(["size", *(words.size(v.bytes) for v in values)]), right=True),
        Column("steps", widest(["steps", *steps]), right=True),
    ]
    room = max(width - 2 - sum(column.width + 2 for column in columns), 20)
    columns.append(Column("shape, operator", room))
    rows = (
        [
            [[(words.size(v.bytes), "bold")]],
            [[(span, "")]],
            [[(escape.visible("  ".join(filter(None, (str(v.shape or ""), v.op_name or v.name)))), "")]],
        ]
        for v, span in zip(values, steps, strict=True)
    )
    yield from table(columns, rows, indent=2)
