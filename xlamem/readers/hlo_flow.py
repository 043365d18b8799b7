"""Where values come from and where they go: through copies, tuples, bitcasts, loops and asynchronous pairs.

Compilers add instructions that only move or rename values, and most of those carry no metadata. What a user
knows is the instruction at the far end.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from xlamem.readers.hlo_module import Computation, HloModule, Instruction

Place = tuple[str, tuple[int, ...]]

#: The result is the operand: same values, same or another memory or layout.
_MOVES = frozenset(
    {
        "copy",
        "bitcast",
        "optimization-barrier",
        "domain",
        "all-gather-done",
        "all-reduce-done",
        "convert-done",
    }
)
_RENAMES = frozenset({"bitcast", "optimization-barrier", "domain", "tuple", "get-tuple-element"})
_PASSED_INTO = frozenset({"while", "copy-start", "copy-done"})
_STEPS = 200


class Flow:
    """The paths of one module."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self._names: dict[Place, Instruction | None] = {}

    @cached_property
    def callers(self) -> dict[str, Instruction]:
        """The instruction that runs each computation."""
        return {name: i for i in self.module.sequence if i.opcode != "fusion" for name in i.called}

    def users(self, name: str) -> list[Instruction]:
        """Which steps of the program use the result of ``name``, in program order."""
        sequence = self.module.sequence
        return [sequence[at] for at in dict.fromkeys(self.module.uses.get(name, ()))]

    def root(self, computation: str) -> str | None:
        """The name of a computation's root."""
        found: Computation | None = self.module.computations.get(computation)
        return None if found is None else found.root

    def back(self, place: Place) -> Place | None:
        """One step towards the producer of the value at ``place``; None if it is made there."""
        name, index = place
        instruction = self.module.instructions.get(name)
        if instruction is None:
            return None
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "parameter":
            caller = self.callers.get(instruction.computation)
            if caller is None:
                return None
            number = 0 if caller.opcode == "while" else instruction.number or 0
            number += caller.opcode == "conditional"
            return (caller.operands[number], index) if number < len(caller.operands) else None
        if opcode in ("while", "call", "conditional") and instruction.called:
            # A loop's last computation is its body, whose root is what the loop gives back.
            root = self.root(instruction.called[-1])
            return None if root is None else (root, index)
        if opcode == "tuple":
            return (operands[index[0]], index[1:]) if index and index[0] < len(operands) else None
        if not operands:
            return None
        if opcode == "get-tuple-element":
            return operands[0], (instruction.number or 0, *index)
        if opcode == "copy-done":
            return operands[0], (0, *index)
        if opcode == "copy-start":
            return (operands[0], index[1:]) if index and index[0] < 2 else None
        if opcode == "async-start":
            return self._async_start(instruction, index)
        if opcode == "async-update":
            return operands[0], index
        if opcode == "async-done":
            return operands[0], (1, *index)
        if opcode in _MOVES or (opcode == "custom-call" and instruction.op_name is None):
            return operands[0], index
        return None

    def _async_start(self, instruction: Instruction, index: tuple[int, ...]) -> Place | None:
        if len(index) >= 2 and index[0] == 0 and index[1] < len(instruction.operands):
            return instruction.operands[index[1]], index[2:]
        root = self.root(instruction.called[0]) if instruction.called and index[:1] == (1,) else None
        return None if root is None else (root, index[1:])

    def op_name(self, place: Place) -> Instruction | None:
        """The instruction that names the value at ``place``: the nearest with an op_name, going back.

        A buffer that is only made room for is named by what fills it (a loop's body). None: nobody names it.
        """
        names = self._names
        seen: dict[Place, None] = {}
        at: Place | None = place
        last = place
        found: Instruction | None = None
        while at is not None and at not in seen and len(seen) < _STEPS:
            if at in names:
                found = names[at]
                break
            seen[at] = None
            last = at
            instruction = self.module.instructions.get(at[0])
            found = None if instruction is None else self._named(instruction)
            if instruction is None or found is not None:
                break
            at = self.back(at)
        else:
            found = self._filler(last, seen)
        # The name of one is that of all on the way to it.
        for passed in seen:
            names[passed] = found
        return found

    def _named(self, instruction: Instruction) -> Instruction | None:
        if instruction.op_name is not None:
            return instruction
        if instruction.opcode == "fusion" and instruction.called:
            inside = self.module.computations.get(instruction.called[0])
            if inside is not None:  # fusions without a name of their own are few
                named = [i for i in inside.instructions if i.op_name is not None and i.opcode != "parameter"]
                # The root comes last, and the root is what the fusion is for.
                return named[-1] if named else None
        return None

    def _filler(self, place: Place, passed: Iterable[Place]) -> Instruction | None:
        """Who writes a buffer that nobody made: an allocation that is handed to a loop."""
        seen = set(passed)
        name, index = place
        for user in self.users(name)[:20]:
            if user.opcode != "tuple" or index:
                continue
            for loop in self.users(user.name):
                if loop.opcode == "while":
                    inner: Place | None = (loop.name, (user.operands.index(name),))
                    while inner is not None and inner not in seen and len(seen) < _STEPS:
                        seen.add(inner)
                        instruction = self.module.instructions.get(inner[0])
                        named = None if instruction is None else self._named(instruction)
                        if named is not None:
                            return named
                        inner = self.back(inner)
        return None

    def producer(self, place: Place) -> Instruction | None:
        """The instruction that computed the value at ``place``, behind everything that only moves it."""
        seen: set[Place] = set()
        at = place
        while at not in seen and len(seen) < _STEPS:
            seen.add(at)
            before = self.back(at)
            if before is None:
                break
            at = before
        return self.module.instructions.get(at[0])

    def consumer(self, name: str) -> Instruction | None:
        """The first instruction that computes with the result of ``name``, behind what only moves it.

        Into loops it follows the element of the loop's tuple that the value is.
        """
        at = name
        index: tuple[int, ...] = ()
        user = None
        for _ in range(_STEPS):
            step = self._use(at, index)
            if step is None:
                return user
            user, at, index = step
            if user.opcode not in _MOVES and user.opcode not in _RENAMES and user.opcode not in _PASSED_INTO:
                return user
        return user

    def _use(self, name: str, index: tuple[int, ...]) -> tuple[Instruction, str, tuple[int, ...]] | None:
        """The first use of a value, and where the value is from there on; None if it is not used."""
        for user in self.users(name):
            if user.opcode == "tuple":
                return user, user.name, (user.operands.index(name), *index)
            if user.opcode == "get-tuple-element":
                if index[:1] == (user.number,):
                    return user, user.name, index[1:]
                continue
            if user.opcode == "while" and user.called:
                body = self.module.computations.get(user.called[-1])
                inside = [] if body is None else [i for i in body.instructions if i.opcode == "parameter"]
                return user, inside[0].name if inside else user.name, index
            if user.opcode == "copy-start":
                return user, user.name, (0, *index)
            if user.opcode == "copy-done":
                return user, user.name, index[1:]
            return user, user.name, index
        return None
