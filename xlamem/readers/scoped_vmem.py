"""Scoped VMEM: what one kernel or fused operation asks for on the chip's own memory, against its limit.

::

    Ran out of memory in memory space vmem while allocating on stack for %k = f32[65536,2048]
    custom-call(...), custom_call_target="tpu_custom_call", ..., backend_config={kilobytes of base64}. Scoped
    allocation with size 64.00M and limit 16.00M exceeded scoped vmem limit by 48.00M.
    Mosaic failed to compile TPU kernel: Insufficient scoped vmem: 44.05M > 32M
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.label import Label, parse_label, parse_pairs
from xlamem.readers.lines import Lines
from xlamem.readers.sentence import sentence
from xlamem.readers.tpu_message import Message, S, W, messages
from xlamem.report import Allocation, MemoryReport, Space
from xlamem.units import Size, size_from

_HEAD = re.compile(
    rf"Ran{W}out{W}of{W}memory{W}in{W}memory{W}space{W}(\w{{1,20}}){W}while{W}allocating{W}on{W}stack\b"
    rf"(?:{W}for\b)?"
)
_CLAUSE = re.compile(rf"Scoped{W}allocation{W}with{W}size{W}{S}")
_LIMIT = re.compile(rf"\blimit{W}{S}")
_OVER = re.compile(rf"exceeded{W}scoped{W}(?:\w{{1,20}}{W})?limit{W}by{W}{S}")
_OF_SPACE = re.compile(rf"scoped{W}(\w{{1,20}}){W}limit\b")
_INSUFFICIENT = re.compile(rf"Insufficient{W}scoped{W}(\w{{1,20}}):{W}{S}{W}>{W}{S}")
#: The instruction stands between the head and the clause, with whatever its configuration holds.
_FAR = 8 << 20
_REACH = 300
_LABEL = 600
_READ = 64 << 10
_CONFIG = re.compile(r",?\s*backend_config\s*=")
_METADATA = re.compile(r"(?<!\w)metadata=\{([^{}]*)")
_QUOTE = re.compile(r"\\+([\"'])")


def read_scoped_vmem(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such failure in ``lines``, in text order. ``name`` is the input's."""
    found: list[tuple[int, MemoryReport]] = []
    clauses = list(messages(lines, name, _CLAUSE, _REACH))
    taken: set[int] = set()
    for message in messages(lines, name, _HEAD, _FAR):
        # The clause is a beginning of its own: nothing else may stand between.
        clause = next((c for c in clauses if c.start == message.until), None)
        if clause is not None:
            taken.add(clause.start)
        found.append((message.start, _of_instruction(message, clause)))
    found += [(c.start, _figures_alone(c)) for c in clauses if c.start not in taken]
    found += [(m.start, _insufficient(m)) for m in messages(lines, name, _INSUFFICIENT, _REACH)]
    found.sort(key=lambda pair: pair[0])
    yield from (report for _, report in found)


def _of_instruction(message: Message, clause: Message | None) -> MemoryReport:
    text = message.lines.text
    space = message.head[1].lower()
    begin = message.head.end()
    stop = min(message.until, begin + _READ)
    config = _CONFIG.search(text, begin, stop)
    shown = _instruction(text[begin : config.start() if config else stop])
    label = parse_label(shown)
    told = sentence(text, message.start, config.start() if config else stop).rstrip(" .")
    if clause is None:
        figures = Space(name=space)
        size = None
    else:
        figures, size = _figures(clause, space)
        joint = " ... " if config else ". "
        told += joint + sentence(text, clause.start, clause.end)
        message.end = clause.end
    return message.report(
        "tpu-scoped-vmem",
        kind="onchip",
        fits=False,
        message=told,
        spaces=(figures,),
        allocations=_allocations(message, space, size, label, shown),
        truncated=clause is None and message.cut,
    )


def _instruction(text: str) -> str:
    """The instruction's HLO text on one line, with the quotes of a JSON string decoded."""
    return _QUOTE.sub(r"\1", " ".join(re.sub(r"\\[nrt]", " ", text).split())).rstrip(" .")


def _figures(clause: Message, space: str) -> tuple[Space, Size]:
    size = size_from(clause.head[1], clause.head[2])
    limit, over = clause.size(_LIMIT), clause.size(_OVER)
    return Space(name=space, used=size, capacity=limit, over=over), size


def _figures_alone(clause: Message) -> MemoryReport:
    """The sentence with the figures where the one with the instruction was lost."""
    of = clause.find(_OF_SPACE)
    space = of[1].lower() if of else "vmem"
    figures, _ = _figures(clause, space)
    return clause.report("tpu-scoped-vmem", kind="onchip", fits=False, spaces=(figures,))


def _insufficient(message: Message) -> MemoryReport:
    asked = size_from(message.head[2], message.head[3])
    limit = size_from(message.head[4], message.head[5])
    return message.report(
        "mosaic-scoped-vmem",
        kind="onchip",
        fits=False,
        spaces=(Space(name=message.head[1].lower(), used=asked, capacity=limit),),
        notes=("Mosaic, which compiles Pallas kernels, says this: it is about one kernel.",),
    )


def _allocations(
    message: Message, space: str, size: Size | None, label: Label, shown: str
) -> tuple[Allocation, ...]:
    if size is None:
        return ()
    found = _METADATA.search(shown)
    metadata = parse_pairs(found[1]) if found else {}
    line = metadata.get("source_line", "")
    # The instruction's own shape is that of its result, which need not be in this memory: only the label
    # has it.
    return (
        Allocation(
            space=space,
            kind="scoped",
            bytes=size,
            reported_bytes=size,
            name=label.name,
            opcode=label.opcode,
            operands=label.operands,
            op_name=metadata.get("op_name") or None,
            label=shown[:_LABEL] + ("..." if len(shown) > _LABEL else "") if shown else None,
            source_file=metadata.get("source_file") or None,
            source_line=int(line) if line.isdecimal() and len(line) < 10 else None,
            line=message.lines.number_at(message.start),
        ),
    )
