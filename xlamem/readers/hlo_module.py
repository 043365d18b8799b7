"""An HLO module as the memory readers need it: names, shapes, operands and where each came from.

Text (:mod:`xlamem.readers.hlo_text`) and proto (:mod:`xlamem.readers.hlo_proto`) both become this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from xlamem.errors import ParseError
from xlamem.shape import Shape

#: Opcodes whose called computations run as steps of the program; a fusion's do not.
CONTROL_FLOW = frozenset({"while", "call", "conditional", "async-start"})
#: Opcodes whose ``called`` is kept: what a reduction or a sort applies says nothing about memory.
CALLERS = CONTROL_FLOW | {"fusion"}


class Instruction(NamedTuple):
    """One HLO instruction. A tuple, because a module has hundreds of thousands of them.

    ``operands`` and ``called`` are names of instructions and of computations (a loop's condition first, then
    its body). ``number`` is what the opcode counts: a parameter's, or the element a get-tuple-element takes.
    """

    name: str
    opcode: str
    shape: Shape | None
    #: Padded bytes of the result; of a tuple, the sum of what it points to. None: the shape is unreadable.
    bytes: int | None
    computation: str
    operands: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    number: int | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None


class Computation:
    """A computation: its instructions in program order if the module is scheduled, and its root.

    Most computations of a module are the insides of fusions, and few of those matter for memory: a reader may
    make a class of its own that reads what is asked for.
    """

    __slots__ = ("_instructions", "_root", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._root: tuple[str, str] | None = None
        self._instructions: list[Instruction] = []

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions; a list to append to while the computation is read."""
        return self._instructions

    def set_root(self, name: str, opcode: str) -> None:
        """Say which instruction is the root."""
        self._root = name, opcode

    @property
    def root(self) -> str | None:
        """The name of the root; None if it is not known."""
        found = self._rooted()
        return None if found is None else found[0]

    @property
    def root_opcode(self) -> str | None:
        """The opcode of the root."""
        found = self._rooted()
        return None if found is None else found[1]

    def _rooted(self) -> tuple[str, str] | None:
        return self._root

    @property
    def opcodes(self) -> set[str]:
        """The opcodes in it."""
        return {i.opcode for i in self.instructions}


@dataclass
class HloModule:
    """A module. ``notes`` say what could not be read; ``truncated``, that the input broke off inside.

    ``fused`` names the computations that are insides of fusions.
    """

    name: str
    entry: str | None = None
    scheduled: bool = False
    computations: dict[str, Computation] = field(default_factory=dict)
    fused: set[str] = field(default_factory=set)
    #: Parameter numbers whose memory the outputs reuse (donated).
    aliased_parameters: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    truncated: bool = False

    @cached_property
    def instructions(self) -> dict[str, Instruction]:
        """The instructions by name, which is unique; all but those inside fusions: what can have a buffer."""
        outside = (c for c in self.computations.values() if c.name not in self.fused)
        return {i.name: i for c in outside for i in c.instructions}

    @cached_property
    def sequence(self) -> tuple[Instruction, ...]:
        """The program in order, with what loops, calls and branches run before the instruction that runs it.

        This is XLA's own flattening (HloLiveRange), so positions here are positions in a live-range file.
        """
        done: list[Instruction] = []
        if self.entry in self.computations:
            self._flatten(self.computations[self.entry], done, {self.entry})
        return tuple(done)

    @cached_property
    def uses(self) -> dict[str, list[int]]:
        """At which positions of the sequence each instruction's result is used, ascending."""
        found: dict[str, list[int]] = {}
        known = found.get
        for at, instruction in enumerate(self.sequence):
            for operand in instruction.operands:
                there = known(operand)
                if there is None:
                    found[operand] = [at]
                else:
                    there.append(at)
        return found

    def _flatten(self, computation: Computation, done: list[Instruction], inside: set[str]) -> None:
        for instruction in computation.instructions:
            if instruction.opcode in CONTROL_FLOW:
                for name in instruction.called:
                    # A computation cannot call itself; a damaged file can say that it does.
                    if name in self.computations and name not in inside:
                        inside.add(name)
                        self._flatten(self.computations[name], done, inside)
            done.append(instruction)


@lru_cache(maxsize=65536)
def sized(text: str) -> tuple[Shape | None, int | None]:
    """The shape that ``text`` spells and its padded bytes; None for both if it is none.

    One odd type must not hide a whole module. Cached: a module repeats a few hundred shapes.
    """
    try:
        shape = Shape.parse(text)
    except ParseError:
        return None, None
    return shape, int(shape.padded_bytes)


def shape_of(text: str) -> Shape | None:
    """The shape that ``text`` spells, or None if it is none."""
    return sized(text)[0]
