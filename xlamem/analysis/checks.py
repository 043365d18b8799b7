"""The figures of a report compared with each other and with what the shapes take.

Every printed figure is known to half of its last digit, so a sum holds if it is met within the digits of
all its terms together. A check that fails is shown: either the text is damaged, or the compiler counts
otherwise than we know, or our tile model is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from xlamem.finding import Check
from xlamem.report import Allocation, MemoryReport, Space
from xlamem.units import Size, format_size, slack_of


def run(report: MemoryReport) -> tuple[Check, ...]:
    """Every check that the figures at hand allow."""
    found: list[Check] = []
    for space in report.spaces:
        found.extend(_space_checks(space))
        found.extend(_list_checks(space, report.in_space(space.name)))
    found.extend(_item_checks(report))
    return tuple(found)


def _sum_check(name: str, whole: int | None, parts: list[int | None], words: str) -> Iterator[Check]:
    """That ``parts`` add up to ``whole``; nothing if one of them is not known."""
    known = [part for part in parts if part is not None]
    if whole is None or len(known) != len(parts):
        return
    total = sum(int(part) for part in known)
    ok = abs(total - int(whole)) <= 2 * (slack_of(whole) + sum(slack_of(part) for part in known))
    sum_text = " + ".join(format_size(part) for part in known)
    sign = "=" if ok else f"= {format_size(total)}, not"
    yield Check(name, ok, f"{words}: {sum_text} {sign} {format_size(whole)}")


def _space_checks(space: Space) -> Iterator[Check]:
    label = space.name
    if space.over is not None and space.capacity is not None:
        yield from _sum_check(
            f"{label}-over",
            space.used,
            [space.capacity, space.over],
            f"{label}: capacity and excess make used",
        )
    rows = [space.reserved, space.program, space.arguments]
    if space.total is not None and space.program is not None:
        known = [row for row in rows if row is not None]
        yield from _sum_check(f"{label}-total", space.total, list(known), f"{label}: the rows make the total")
    program_rows = [
        row
        for row in (space.program_reserved, space.constants, space.scoped, space.temps, space.overlays)
        if row is not None
    ]
    if program_rows:
        yield from _sum_check(
            f"{label}-program", space.program, list(program_rows), f"{label}: the rows make the program"
        )
    if space.padded is not None and space.fragmentation is not None:
        yield from _sum_check(
            f"{label}-temps",
            space.temps,
            [space.padded, space.fragmentation],
            f"{label}: padded and fragmentation make the temporaries",
        )
    if space.utilization is not None and space.padded and space.unpadded is not None:
        ratio = 100 * int(space.unpadded) / int(space.padded)
        off = 100 * (slack_of(space.unpadded) + slack_of(space.padded)) * 2 / int(space.padded)
        ok = abs(ratio - space.utilization) <= 0.06 + off
        yield Check(
            f"{label}-utilization",
            ok,
            f"{label}: unpadded / padded is {ratio:.1f}%, printed as {space.utilization:.1f}%",
        )
    yield from _used_check(space)


def _used_check(space: Space) -> Iterator[Check]:
    """What is measured against the capacity.

    Program and arguments; from libtpu 0.0.42.1 on with the outputs that share nothing with them; before
    August 2020 with what the system reserves.
    """
    if space.used is None or space.program is None or space.total is None:
        return
    base = [space.program, *([space.arguments] if space.arguments is not None else [])]
    outputs = None
    if space.outputs is not None:
        outputs = Size(
            max(0, int(space.outputs) - int(space.aliased or 0)),
            slack_of(space.outputs) + slack_of(space.aliased),
        )
    ways: list[tuple[str, list[int]]] = [("the program and its arguments", base)]
    if outputs is not None:
        ways.append(("the program, its arguments and outputs", [*base, outputs]))
    if space.reserved is not None:
        ways.append(("the program, its arguments and what is reserved", [*base, space.reserved]))
    for words, parts in ways:
        if abs(sum(int(p) for p in parts) - int(space.used)) <= 2 * (
            slack_of(space.used) + sum(slack_of(p) for p in parts)
        ):
            yield Check(f"{space.name}-used", True, f"{space.name}: used is {words}")
            return
    sums = ", ".join(f"{words} {format_size(sum(int(p) for p in parts))}" for words, parts in ways)
    yield Check(f"{space.name}-used", False, f"{space.name}: used is {format_size(space.used)}, yet {sums}")


def _list_checks(space: Space, listed: tuple[Allocation, ...]) -> Iterator[Check]:
    """That the listed temporaries are not more than all of them."""
    temps = [a for a in listed if a.kind == "temp"]
    if not temps or space.temps is None:
        return
    total = sum(int(a.bytes) for a in temps)
    ok = total <= int(space.temps) + slack_of(space.temps) * 2 + sum(slack_of(a.bytes) for a in temps)
    words = "hold no more than" if ok else "hold more than"
    yield Check(
        f"{space.name}-listed",
        ok,
        f"{space.name}: {len(temps)} listed temporaries ({format_size(total)}) {words} "
        f"all of them ({format_size(space.temps)})",
    )


def _item_checks(report: MemoryReport) -> Iterator[Check]:
    """Each printed size against the bytes that the shape takes; those that agree in one line."""
    agreed = 0
    for number, a in enumerate(report.allocations, 1):
        if a.shape is None or not isinstance(a.reported_bytes, Size):
            continue
        if a.provenance == "computed":
            agreed += 1
        elif a.shape.layout is not None:  # usage reports print none, and without one padding is unknown
            yield Check(
                "item-size",
                False,
                f"item {number}: printed as {format_size(a.reported_bytes)}, yet {a.shape} takes "
                f"{format_size(a.shape.padded_bytes)}",
            )
        if (
            isinstance(a.reported_unpadded_bytes, Size)
            and not a.shape.is_tuple
            and not a.reported_unpadded_bytes.agrees_with(a.shape.unpadded_bytes)
        ):
            yield Check(
                "item-unpadded",
                False,
                f"item {number}: unpadded printed as {format_size(a.reported_unpadded_bytes)}, yet {a.shape} "
                f"holds {format_size(a.shape.unpadded_bytes)}",
            )
    if agreed:
        items = "1 item" if agreed == 1 else f"{agreed} items"
        yield Check("item-sizes", True, f"{items}: the printed sizes are those that the shapes take")
