"""The totals of one memory space as rows of label, size and a remark, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlamem.show import words

if TYPE_CHECKING:
    from xlamem.report import MemoryReport, Space

Row = tuple[str, str, str]

# In the order in which people read them: what was asked, what there is, what it is made of.
_PLAIN = (
    ("requested", "asked for", ""),
    ("free", "free", ""),
    ("largest_free", "largest free piece", ""),
    ("reservable", "still reservable", ""),
    ("goal", "aimed at", "what rematerialization tried to get below"),
    ("total", "total", ""),
    ("peak", "peak", ""),
    ("reserved", "reserved", ""),
    ("arguments", "arguments", ""),
    ("outputs", "outputs", ""),
    ("aliased", "aliased", "outputs that share memory with arguments"),
    ("program", "program", "beside its arguments"),
    ("temps", "  temps", ""),
    ("constants", "  constants", ""),
    ("overlays", "  overlays", "the program's code"),
    ("scoped", "  scoped", "the kernels' own memory"),
    ("program_reserved", "  reserved", "kept for the program"),
)

#: How many allocations the padding is traced to.
_TRACED = 3


def heading(report: MemoryReport, space: Space) -> str:
    """ "HBM of v2 (inferred), program jit_f, as reported"."""
    text = space.name.upper() if space.name in {"hbm", "vmem", "smem", "cmem"} else space.name
    text = "host memory" if text == "host" else text
    if report.target is not None:
        text += f" of {report.target.name}{_inferred(report) if report.target.inferred else ''}"
    if report.program:
        text += f", program {report.program}"
    return f"{text}, {words.AS_KNOWN[report.provenance]}"


def _inferred(report: MemoryReport) -> str:
    return " (inferred from the figures)" if report.provenance == "reported" else " (by the dump's files)"


def totals(report: MemoryReport, space: Space) -> list[Row]:
    """All that is known about ``space``, and only that."""
    over = [("over by", words.size(space.excess), "")] if space.excess else []
    return [*_used(space), *over, *_known(report, space)]


def in_a_line(space: Space) -> str:
    """The same in a few words, for the spaces that the report is not about."""
    text = "" if space.used is None else words.size(space.used)
    if space.capacity is not None:
        text += f"{' of ' if text else ''}{words.size(space.capacity)}"
    if space.over:
        text += f", over by {words.size(space.over)}"
    return text


def _used(space: Space) -> Iterator[Row]:
    if space.used is None:
        if space.capacity is not None:
            yield "capacity", words.size(space.capacity), ""
        return
    remark = ""
    if space.capacity:
        share = words.percent(space.used, space.capacity)
        if space.over or space.used > space.capacity:
            # Printed figures are rounded: "100.0%" would deny what the next line says.
            share = words.times(space.used / space.capacity)
        remark = f"of {words.size(space.capacity)} ({share})"
    yield "used", words.size(space.used), remark


def _known(report: MemoryReport, space: Space) -> Iterator[Row]:
    for field, label, remark in _PLAIN:
        value: int | None = getattr(space, field)
        if value is None:
            continue
        remark = _made_of(space) if field == "temps" else _remark(report, field) or remark
        yield label, words.size(value), remark
        if field == "temps":
            yield from _padding(report, space)
    if space.temps is None:
        yield from _padding(report, space)


def _remark(report: MemoryReport, field: str) -> str:
    """What depends on the form: each counts its own things."""
    if field == "total" and report.source.format == "tpu-oom-report":
        return "reserved, program and arguments: outputs are not in it"
    if field == "total":
        return "everything at once"
    if field == "reserved":
        return "in the allocator's pool" if report.backend == "gpu" else "kept by the system"
    return ""


def _made_of(space: Space) -> str:
    parts = []
    if space.unpadded is not None:
        parts.append(f"{words.size(space.unpadded)} of data")
        if space.padding:
            parts.append(f"{words.size(space.padding)} of padding")
    elif space.padded is not None:
        parts.append(f"{words.size(space.padded)} padded")
    if space.fragmentation is not None:
        parts.append(f"{words.size(space.fragmentation)} of fragmentation")
    return " + ".join(parts)


def _padding(report: MemoryReport, space: Space) -> Iterator[Row]:
    """The padding, its share, and the allocations that it sits in."""
    traced = []
    known = 0
    for rank, index in enumerate(words.ranked(report), 1):
        allocation = report.allocations[index]
        if allocation.space == space.name and allocation.padding_bytes:
            known += allocation.padding_bytes
            traced.append((allocation.padding_bytes, rank))
    traced.sort(key=lambda pair: (-pair[0], pair[1]))
    where = ", ".join(f"{words.size(n)} in #{rank}" for n, rank in traced[:_TRACED])
    if space.padding is not None:
        if not space.padding:
            yield "    padding", words.size(0), ""
            return
        share = f"{words.percent(space.padding, int(space.padded or 0))} of the padded temps"
        yield "    padding", words.size(space.padding), f"{share}: {where}" if where else share
    elif known:
        bound = "at least, from the list" if report.partial else "from the list"
        yield "padding", words.size(known), f"{bound}: {where}"
