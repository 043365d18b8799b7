"""Why memory ran out, in one sentence, and the reasons behind it."""

from __future__ import annotations

from collections.abc import Iterator

from xlamem.analysis.groups import equal_tensors, layout_copies
from xlamem.analysis.padding import needed_without_padding, total_padding
from xlamem.finding import Finding
from xlamem.report import Kind, MemoryReport, Space
from xlamem.units import format_size

#: A single buffer, or a set of equal ones, is a reason of its own from this share of what is used on.
_GIANT_SHARE = 0.4
_SHARE = 0.2
#: Constants, overlays and fragmentation are usually nothing; from this share on they are worth a line.
_SMALL_SHARE = 0.05
#: Less padding than this is not worth a line beside the totals.
_TRACE = 0.001

_TITLES = {
    "padding": "tile padding",
    "giant-tensor": "one giant tensor",
    "equal-tensors": "many equal tensors",
    "layout-copies": "layout copies",
    "arguments": "the arguments",
    "outputs": "the outputs",
    "constants": "constants",
    "overlays": "the program's code (overlays)",
    "fragmentation": "fragmentation",
    "scoped": "scoped (kernel and spill) memory",
}

_NO_LIST = "The message lists nothing; a dump, or the same compile on any machine, shows who holds the bytes."

#: What there is to say where the form itself is the answer.
_OF_FORM = {
    "tpu-hbm-line": _NO_LIST,
    "tpu-early-abort": "The compiler gave up on an estimate, before it laid anything out; the real figure may differ.",
    "tpu-one-buffer": "One buffer alone is larger than the whole memory.",
    "gpu-oom": "The message does not say what the memory was for.",
}
_OF_KIND: dict[Kind, str] = {
    "fragmentation": "There is enough free memory, but not in one piece.",
    "runtime-alloc": "The device's memory was already taken: by arrays, loaded programs, or somebody else.",
    "program-load": "The program was compiled and could not be loaded beside what is on the device already.",
    "benign": "The allocator was refused memory that would have made it faster, and went on without.",
    "kernel-shared-memory": "This is the memory of one kernel's block on the chip, not the card's.",
    "remat-warning": "The program may fit all the same; if it does not, an error follows.",
}


def findings(report: MemoryReport) -> tuple[Finding, ...]:
    """The reasons, the one that decides first, then by the bytes at stake."""
    space = report.space
    if space is None:
        return ()
    base = _base(report, space)
    found = list(_padding(report, space, base))
    if base:
        found.extend(_tensors(report, space, base))
        found.extend(_rows(report, space, base))
    decides = _padding_decides(report, space)
    found.sort(key=lambda f: (not (decides and f.name == "padding"), -(f.bytes or 0)))
    found.extend(_remarks(report, space))
    return tuple(found)


def sentence(report: MemoryReport, reasons: tuple[Finding, ...]) -> str:
    """Why, in one sentence; "" where nothing is to be added to the headline."""
    space = report.space
    if report.kind == "success" or report.fits:
        return _fitting(report)
    if report.source.format in _OF_FORM and not report.allocations:
        return _OF_FORM[report.source.format]
    if report.kind in _OF_KIND:
        return _OF_KIND[report.kind]
    if space is None or report.kind not in ("hbm", "onchip", "host"):
        return ""
    least = _SMALL_SHARE * _base(report, space)
    titles = [_TITLES[f.name] for f in reasons if f.name in _TITLES and (f.bytes or 0) >= least]
    need = needed_without_padding(report)
    if _padding_decides(report, space) and need is not None:
        return f"Padding-bound: without tile padding {_range(report, need.bytes)} would be needed, and that fits."
    if not titles:
        return "" if report.allocations else "The report does not list what holds the memory."
    main = titles[0] if len(titles) == 1 else f"{titles[0]}, then {titles[1]}"
    text = f"Mainly {main}."
    padded = any(f.name == "padding" for f in reasons)
    if padded and need is not None and space.capacity and need.bytes > int(space.capacity):
        text += f" Padding alone does not decide it: without any, {_still_needed(need.bytes, space.capacity)}"
    return text


def _fitting(report: MemoryReport) -> str:
    padding = total_padding(report)
    if padding is None or not padding.bytes:
        return ""
    return f"{format_size(padding.bytes)} of what it uses are padding ({padding.provenance})."


def _range(report: MemoryReport, lower: int) -> str:
    """What would be needed without padding: with as much fragmentation as now at most, with none at least."""
    space, padding = report.space, total_padding(report)
    if space is None or padding is None or space.used is None:
        return format_size(lower)
    upper = int(space.used) - padding.bytes
    small = upper - lower <= _SMALL_SHARE * upper
    return format_size(lower) if small else f"{format_size(lower)} to {format_size(upper)}"


def _still_needed(needed: int, capacity: int) -> str:
    ratio = needed / int(capacity)
    times = f"{ratio:.1f} times" if ratio >= 1.05 else "just over"
    return f"{format_size(needed)} would still be needed, {times} the {format_size(capacity)} there are."


def _base(report: MemoryReport, space: Space) -> int:
    """What shares are taken of: what is used, or as much of it as is known."""
    for value in (space.used, space.total, space.program):
        if value:
            return int(value)
    return sum(int(a.bytes) for a in report.in_space(space.name))


def _padding_decides(report: MemoryReport, space: Space) -> bool:
    padding, need = total_padding(report), needed_without_padding(report)
    if padding is None or need is None or space.capacity is None or space.used is None:
        return False
    # Leaving fragmentation out must not be credited to padding.
    without = int(space.used) - padding.bytes
    return padding.bytes > 0 and int(space.used) > int(space.capacity) >= without


def _share(part: int, base: int) -> str:
    share = part / base
    return f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"


def _of(space: Space) -> str:
    """What :func:`_base` is, in words."""
    return "what is used" if space.used or space.total or space.program else "what is listed"


def _padding(report: MemoryReport, space: Space, base: int) -> Iterator[Finding]:
    padding = total_padding(report)
    if padding is None or padding.bytes <= _TRACE * base:
        return
    least = "at least " if padding.lower_bound else ""
    text = f"{least}{format_size(padding.bytes)} are tile padding ({padding.provenance}"
    text += f", {_share(padding.bytes, base)} of {_of(space)})." if base else ")."
    need = needed_without_padding(report)
    if need is not None and space.capacity and report.fits is False:
        if need.bytes > int(space.capacity):
            text += f" Without any, {_still_needed(need.bytes, space.capacity)}"
        else:
            text += f" Without any, {_range(report, need.bytes)} would be needed, and that fits."
    yield Finding("padding", text[0].upper() + text[1:], padding.bytes)


def _tensors(report: MemoryReport, space: Space, base: int) -> Iterator[Finding]:
    listed = report.in_space(space.name)
    arrays = [a for a in listed if a.shape is not None]
    largest = max(arrays, key=lambda a: int(a.bytes), default=None)
    if largest is not None and int(largest.bytes) >= _GIANT_SHARE * base:
        beyond = _exceeds(largest.bytes, space.capacity)
        more = (
            ", more than all the memory there is"
            if beyond
            else f", {_share(int(largest.bytes), base)} of {_of(space)}"
        )
        yield Finding(
            "giant-tensor",
            f"One buffer, {largest.shape}, takes {format_size(largest.bytes)}{more}.",
            int(largest.bytes),
        )
    for group in equal_tensors(listed)[:3]:
        if len(group.allocations) > 1 and group.bytes >= _SHARE * base:
            yield Finding(
                "equal-tensors",
                f"{len(group.allocations)} buffers of {group.text} take {format_size(group.bytes)} together, "
                f"{_share(group.bytes, base)} of {_of(space)}.",
                group.bytes,
            )
    copies = layout_copies(listed)
    total = sum(int(c.copy.bytes) for c in copies)
    if copies and total >= _SMALL_SHARE * base:
        shown = max(copies, key=lambda c: int(c.copy.bytes))
        items = _list([f"{c.position + 1} ({format_size(c.copy.bytes)})" for c in copies])
        only = f"Item {items} only changes" if len(copies) == 1 else f"Items {items} only change"
        yield Finding(
            "layout-copies",
            f"{only} a layout: {shown.after.without_layout()} is copied from {_layout(str(shown.before))} to "
            f"{_layout(str(shown.after))}, and while that is done both are alive, "
            f"{format_size(shown.before.padded_bytes)} and {format_size(shown.copy.bytes)}.",
            total,
        )


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _layout(shape: str) -> str:
    return shape[shape.index("{") :] if "{" in shape else "no layout"


def _rows(report: MemoryReport, space: Space, base: int) -> Iterator[Finding]:
    outputs = int(space.outputs or 0) - int(space.aliased or 0)
    shared = f"; {format_size(space.aliased)} more share memory with arguments" if space.aliased else ""
    rows = [
        ("arguments", _SHARE, space.arguments, "The arguments take {}"),
        ("outputs", _SHARE, max(0, outputs), f"The outputs take {{}} of their own{shared}"),
        ("constants", _SMALL_SHARE, space.constants, "Constants take {}"),
        ("overlays", _SMALL_SHARE, space.overlays, "The program's own code (overlays) takes {}"),
        ("scoped", _SMALL_SHARE, space.scoped, "Scoped memory, of kernels and register spills, takes {}"),
        (
            "fragmentation",
            _SMALL_SHARE,
            space.fragmentation,
            "Holes between temporaries (fragmentation) take {}",
        ),
    ]
    over = int(space.over or 0)
    for name, share, value, text in rows:
        if not value or (name == "fragmentation" and not space.padded):
            continue
        enough = report.fits is False and 0 < over <= int(value)
        if int(value) < share * base and not enough:
            continue
        text = text.format(format_size(value))
        if name == "arguments" and _exceeds(value, space.capacity):
            text += ", more than all the memory there is"
        elif enough:
            text += f", more than the excess of {format_size(over)}"
        yield Finding(name, text + ".", int(value))


def _exceeds(value: int | None, capacity: int | None) -> bool:
    return value is not None and capacity is not None and int(value) > int(capacity)


def _remarks(report: MemoryReport, space: Space) -> Iterator[Finding]:
    """What is worth knowing and holds no bytes of its own."""
    names = [a.name for a in report.in_space(space.name) if a.name]
    again = [name for name in names if ".remat" in name or "remat_" in name]
    if again:
        yield Finding(
            "rematerialized",
            f"{len(again)} of {len(names)} named buffers hold what XLA already computes a second time to save memory "
            "(.remat).",
        )
    if report.kind != "success" and space.arguments == 0 and _exceeds(space.program, space.capacity):
        yield Finding(
            "arguments-unplaced",
            "The program alone does not fit, so its arguments were not placed yet: 0B does not mean that it has "
            "none.",
        )
    if report.kind != "success" and space.arguments is None and space.total is not None:
        yield Finding("arguments-unknown", "The report does not say how much the arguments take.")
    assumed = sum(a.shape_assumed for a in report.allocations)
    if assumed:
        yield Finding(
            "assumed-tiles",
            f"{assumed} shapes are printed without a tile; T(8,128) is assumed, as it gives the printed size.",
        )
