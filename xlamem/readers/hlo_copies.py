"""Copies and transposes that only change a layout, each with the two instructions that disagree about it."""

from __future__ import annotations

from dataclasses import replace

from xlamem.readers.hlo_flow import Flow
from xlamem.readers.hlo_module import Instruction
from xlamem.report import LayoutCopy
from xlamem.shape import Shape

_PASSIVE = frozenset({"parameter", "bitcast", "copy", "transpose", "tuple", "get-tuple-element", "reshape"})

_MOVERS = frozenset({"copy", "transpose", "fusion"})


def layout_copies(flow: Flow) -> dict[str, LayoutCopy]:
    """The layout copies among the program's steps, by instruction, in program order."""
    found = {}
    known: dict[tuple[int, int], bool] = {}
    instructions = flow.module.instructions
    for instruction in flow.module.sequence:
        if instruction.opcode not in _MOVERS or len(instruction.operands) != 1:
            continue
        source = instructions.get(instruction.operands[0])
        if source is None or source.shape is None or instruction.shape is None:
            continue
        operand, result = source.shape, instruction.shape
        # The shapes are the module's, so an id stays that of one shape.
        pair = id(operand), id(result)
        differ = known.get(pair)
        if differ is None:
            differ = known[pair] = _differ(operand, result)
        if not differ or not _only_moves(instruction, flow):
            continue
        made = flow.producer((instruction.operands[0], ()))
        used = flow.consumer(instruction.name)
        found[instruction.name] = LayoutCopy(
            name=instruction.name,
            opcode=instruction.opcode,
            bytes=instruction.bytes or 0,
            from_shape=operand,
            to_shape=result,
            producer=None if made is None else made.name,
            producer_op_name=_name(flow, made),
            consumer=None if used is None else used.name,
            consumer_op_name=_name(flow, used),
            op_name=instruction.op_name,
            source_file=instruction.source_file,
            source_line=instruction.source_line,
        )
    return found


def _only_moves(instruction: Instruction, flow: Flow) -> bool:
    """Whether copying or transposing one array is all that ``instruction`` does."""
    if instruction.opcode != "fusion":
        return True
    inside = flow.module.computations.get(instruction.called[0]) if instruction.called else None
    if inside is None or inside.root_opcode not in _PASSIVE:
        return False
    opcodes = inside.opcodes
    return not opcodes - _PASSIVE and bool(opcodes & {"copy", "transpose"})


def _differ(before: Shape, after: Shape) -> bool:
    """Whether two shapes differ in more than the memory space. A scalar has no layout to change."""
    if before.layout is None or after.layout is None or not after.dims:
        return False
    if before.dtype != after.dtype:
        # A TPU's copies can convert on the way; the tiles differ by that alone.
        return before.layout.minor_to_major != after.layout.minor_to_major
    there = replace(before.layout, memory_space=0)
    here = replace(after.layout, memory_space=0)
    return there != here or before.dims != after.dims


def _name(flow: Flow, instruction: Instruction | None) -> str | None:
    if instruction is None:
        return None
    named = flow.op_name((instruction.name, ()))
    return None if named is None else named.op_name
