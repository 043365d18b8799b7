"""Allocations that belong together: the same tensor several times, and copies that only change a layout."""

from __future__ import annotations

from typing import NamedTuple

from xlamem.report import Allocation
from xlamem.shape import Shape

_COPIES = frozenset({"copy", "copy-done", "copy-start", "transpose"})


class Group(NamedTuple):
    """Allocations of one element type and size, whatever their layout. ``bytes`` is their sum."""

    text: str
    allocations: tuple[Allocation, ...]

    @property
    def bytes(self) -> int:
        return sum(int(a.bytes) for a in self.allocations)


class LayoutCopy(NamedTuple):
    """A copy of a tensor into another layout: while it is made, both are alive."""

    copy: Allocation
    position: int
    before: Shape
    after: Shape
    source: str


def equal_tensors(allocations: tuple[Allocation, ...]) -> list[Group]:
    """Array allocations grouped by element type and dimensions, the largest group first."""
    groups: dict[str, list[Allocation]] = {}
    texts: dict[int, str] = {}  # by the shape's identity: a program repeats a few shapes
    for a in allocations:
        if a.shape is not None and not a.shape.is_tuple:
            text = texts.get(id(a.shape))
            if text is None:
                text = texts[id(a.shape)] = str(a.shape.without_layout())
            groups.setdefault(text, []).append(a)
    made = [Group(text, tuple(members)) for text, members in groups.items()]
    return sorted(made, key=lambda group: -group.bytes)


def layout_copies(allocations: tuple[Allocation, ...]) -> list[LayoutCopy]:
    """Copies whose operand is the same tensor in another layout.

    The operand's layout stands in the label up to 2021; after that it is looked up by name among
    the other allocations, so that copies of small operands are not found.
    """
    by_name = {a.name: a for a in allocations if a.name and a.shape is not None}
    found: list[LayoutCopy] = []
    for position, a in enumerate(allocations):
        if a.opcode not in _COPIES or a.shape is None or len(a.operands) != 1:
            continue
        operand = a.operands[0]
        before = operand.shape
        if before is None and operand.name in by_name:
            before = by_name[operand.name].shape
        if before is None or before.is_tuple or a.shape.is_tuple:
            continue
        if before.without_layout() == a.shape.without_layout() and before.layout != a.shape.layout:
            found.append(LayoutCopy(a, position, before, a.shape, operand.name))
    return found
