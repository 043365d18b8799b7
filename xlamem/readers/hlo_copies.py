"""Copies and transposes that only change a layout, each with the two instructions that disagree about it."""

from __future__ import annotations

from dataclasses import replace

from xlamem.readers.hlo_flow import Flow
from xlamem.readers.hlo_module import Instruction
from xlamem.report import LayoutCopy
from xlamem.shape import Shape

_PASSIVE = frozenset({"parameter", "bitcast", "copy", "transpose", "tuple", "get-tuple-element", "reshape"})


def layout_copies(flow: Flow) -> dict[str, LayoutCopy]:
    """The layout copies among the program's steps, by instruction, in program order."""
    found = {}
    for instruction in flow.module.sequence:
        operand = _moved(instruction, flow)
        if operand is None or instruction.shape is None or not _differ(operand, instruction.shape):
            continue
        made = flow.producer((instruction.operands[0], ()))
        used = flow.consumer(instruction.name)
        found[instruction.name] = LayoutCopy(
            name=instruction.name,
            opcode=instruction.opcode,
            bytes=instruction.bytes or 0,
            from_shape=operand,
            to_shape=instruction.shape,
            producer=None if made is None else made.name,
            producer_op_name=_name(flow, made),
            consumer=None if used is None else used.name,
            consumer_op_name=_name(flow, used),
            op_name=instruction.op_name,
            source_file=instruction.source_file,
            source_line=instruction.source_line,
        )
    return found


def _moved(instruction: Instruction, flow: Flow) -> Shape | None:
    """The shape that ``instruction`` copies from, if copying or transposing one array is all that it does."""
    if len(instruction.operands) != 1:
        return None
    if instruction.opcode == "fusion":
        inside = flow.module.computations.get(instruction.called[0]) if instruction.called else None
        if inside is None or inside.root_opcode not in _PASSIVE:
            return None
        opcodes = inside.opcodes
        if opcodes - _PASSIVE or not opcodes & {"copy", "transpose"}:
            return None
    elif instruction.opcode not in ("copy", "transpose"):
        return None
    operand = flow.module.instructions.get(instruction.operands[0])
    return None if operand is None else operand.shape


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
