"""Which values of a module are one buffer: views, tuples, loops and what is updated in place.

A union-find over places (instruction, index of an array in its result). XLA decides the same in its buffer
assignment; this serves where there is none, and to see a loop's buffer as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xlamem.readers.hlo_module import HloModule, Instruction
from xlamem.shape import Shape

Place = tuple[str, tuple[int, ...]]

_VIEWS = frozenset({"bitcast", "optimization-barrier", "domain", "async-update", "while"})
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
_SAME = (_VIEWS - {"while"}) | _IN_PLACE
_IN_PLACE_ROOTS = frozenset({"tuple", "bitcast"}) | _IN_PLACE
_SHARING = (
    _VIEWS
    | _IN_PLACE
    | {
        "tuple",
        "get-tuple-element",
        "copy-start",
        "copy-done",
        "async-start",
        "async-done",
        "call",
        "conditional",
    }
)


class Storage:
    """The groups of places of one module."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self._parent: dict[Place, Place] = {}
        for instruction in module.sequence:
            if self._shares(instruction):
                self._join(instruction)

    def find(self, place: Place) -> Place:
        """The place that stands for the group of ``place``."""
        parent = self._parent
        root = place
        while (above := parent.get(root, root)) != root:
            root = above
        while place != root:
            parent[place], place = root, parent.get(place, root)
        return root

    def spans(self, ranges: Mapping[Place, tuple[int, int]]) -> dict[Place, tuple[int, int]]:
        """For each group the first and last position at which any of its values is needed."""
        found: dict[Place, tuple[int, int]] = {}
        for place, (first, last) in ranges.items():
            root = self.find(place)
            seen = found.get(root)
            found[root] = (first, last) if seen is None else (min(first, seen[0]), max(last, seen[1]))
        return found

    def _union(self, one: Place, other: Place) -> None:
        first, second = self.find(one), self.find(other)
        if first != second:
            self._parent[second] = first

    def _shares(self, i: Instruction) -> bool:
        """Whether the result of ``i`` can be one with something else: most instructions make a buffer."""
        if i.opcode != "fusion":
            return i.opcode in _SHARING
        inside = self.module.computations.get(i.called[0]) if i.called else None
        return inside is not None and inside.root_opcode in _IN_PLACE_ROOTS

    def _join(self, i: Instruction) -> None:
        shape = i.shape
        if i.operands and shape is not None and not shape.is_tuple:
            # By far the most: an array that is one with a single other place.
            index = self._index(i)
            if index is not None:
                self._union((i.operands[0], index), (i.name, ()))
                return
        for source, prefix, target, at in self._same(i):
            part = _part(i.shape if target == i.name else self._shape(target), at)
            for leaf in leaves(part):
                self._union((source, prefix + leaf), (target, at + leaf))

    def _index(self, i: Instruction) -> tuple[int, ...] | None:
        """Which part of its first operand ``i`` is, for opcodes that are that and nothing else."""
        opcode = i.opcode
        if opcode == "get-tuple-element":
            return (i.number or 0,)
        if opcode in _SAME:
            return ()
        return {"copy-done": (0,), "async-done": (1,)}.get(opcode)

    def _shape(self, name: str) -> Shape | None:
        instruction = self.module.instructions.get(name)
        return None if instruction is None else instruction.shape

    def _same(self, i: Instruction) -> Iterator[tuple[str, tuple[int, ...], str, tuple[int, ...]]]:
        """What is one with what: (source, index, target, index). The target is ``i`` or in what it runs."""
        opcode, operands = i.opcode, i.operands
        if opcode == "tuple":
            for n, operand in enumerate(operands):
                yield operand, (), i.name, (n,)
        elif not operands and opcode != "call":
            return
        elif opcode == "get-tuple-element":
            yield operands[0], (i.number or 0,), i.name, ()
        elif opcode == "copy-start":
            yield operands[0], (), i.name, (1,)
        elif opcode == "copy-done":
            yield operands[0], (0,), i.name, ()
        elif opcode == "async-done":
            yield operands[0], (1,), i.name, ()
        elif opcode in _VIEWS or opcode in _IN_PLACE:
            yield operands[0], (), i.name, ()
        if opcode == "while":
            for name in i.called:
                for parameter in self._parameters(name):
                    yield operands[0], (), parameter.name, ()
            if i.called and (root := self.module.computations[i.called[-1]].root if self._has(i) else None):
                yield root, (), i.name, ()
        elif opcode in ("call", "conditional"):
            yield from self._branches(i)
        elif opcode == "async-start" and self._has(i):
            root = self.module.computations[i.called[0]].root
            if root is not None:
                yield root, (), i.name, (1,)
            for parameter in self._parameters(i.called[0]):
                number = parameter.number or 0
                if number < len(operands):
                    yield operands[number], (), parameter.name, ()
                    yield operands[number], (), i.name, (0, number)
        elif opcode == "fusion" and self._has(i):
            yield from self._fused_in_place(i)

    def _has(self, i: Instruction) -> bool:
        return bool(i.called) and all(name in self.module.computations for name in i.called)

    def _parameters(self, computation: str) -> list[Instruction]:
        found = self.module.computations.get(computation)
        return [] if found is None else [i for i in found.instructions if i.opcode == "parameter"]

    def _branches(self, i: Instruction) -> Iterator[tuple[str, tuple[int, ...], str, tuple[int, ...]]]:
        for n, name in enumerate(i.called):
            found = self.module.computations.get(name)
            if found is None:
                continue
            if found.root is not None:
                yield found.root, (), i.name, ()
            for parameter in self._parameters(name):
                # A branch has one parameter, the operand after the selector; a call has its operands.
                number = n + 1 if i.opcode == "conditional" else parameter.number or 0
                if number < len(i.operands):
                    yield i.operands[number], (), parameter.name, ()

    def _fused_in_place(self, i: Instruction) -> Iterator[tuple[str, tuple[int, ...], str, tuple[int, ...]]]:
        """A fusion that ends in an update of one of its operands writes into that operand."""
        inside = self.module.computations[i.called[0]]
        if not inside.opcodes & _IN_PLACE:
            return
        by_name = {x.name: x for x in inside.instructions}
        root = by_name.get(inside.root or "")
        if root is None:
            return
        outputs = list(enumerate(root.operands)) if root.opcode == "tuple" else [(None, root.name)]
        for n, name in outputs:
            parameter = _updated(by_name, name)
            if parameter is not None and parameter.number is not None and parameter.number < len(i.operands):
                yield i.operands[parameter.number], (), i.name, () if n is None else (n,)


def _updated(by_name: dict[str, Instruction], name: str) -> Instruction | None:
    """The parameter of a fusion that ``name`` updates in place, through bitcasts; None if it does not."""
    updates = False
    for _ in range(len(by_name)):
        instruction = by_name.get(name)
        if instruction is None:
            return None
        if instruction.opcode == "parameter":
            return instruction if updates else None
        if (
            instruction.opcode not in ("bitcast", "dynamic-update-slice", "scatter")
            or not instruction.operands
        ):
            return None
        updates = updates or instruction.opcode != "bitcast"
        name = instruction.operands[0]
    return None


def leaves(shape: Shape | None) -> list[tuple[int, ...]]:
    """The indices of the arrays in a shape: [()] for an array."""
    if shape is None:
        return []
    if not shape.is_tuple:
        return [()]
    return [(n, *leaf) for n, element in enumerate(shape.elements) for leaf in leaves(element)]


def _part(shape: Shape | None, index: tuple[int, ...]) -> Shape | None:
    for n in index:
        if shape is None or n >= len(shape.elements):
            return None
        shape = shape.elements[n]
    return shape
