"""One buffer that no TPU memory can hold, whatever else there is.

::

    Allocation (size=103079215104) would exceed memory (size=17179869184) :: #allocation6 [shape =
    'f32[6,4194304,5,5]{3,2,1,0:T(8,128)}', space=hbm, size = 0xffffffffffffffff, tag = '...'] :: NAME
    Allocation (size=...) would exceed memory (size=...) :: %s0 = inlined_call_operand.hbm [shape:
    f32[40,131072], index: 0, kind: input, ...] /* ... */ :: NAME
    RET_CHECK failure (bounds_check.cc:717) allocation_size_words <= std::numeric_limits<int32_t>::max()
    3405774848

Bytes are exact. The memory's size is all of it, before what the system reserves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.errors import ParseError
from xlamem.readers.lines import Lines
from xlamem.readers.tpu_message import Message, W, chip, messages
from xlamem.report import Allocation, MemoryReport, Provenance, Space
from xlamem.shape import Shape
from xlamem.units import Size

_G = rf"(?:{W})?"
_HEAD = re.compile(
    rf"Allocation{_G}\(size=(\d{{1,20}})\){W}would{W}exceed{W}memory(?:{_G}\(size=(\d{{1,20}})\))?"
)
_SHAPE = re.compile(rf"shape{_G}[=:]{_G}\\*['\"]?")
_SPACE = re.compile(rf"(?:space{_G}={_G}|inlined_call_operand\.)([a-z]{{2,10}})\b")
_SCOPED = re.compile(rf",{_G}scoped{_G},")
_TAG = re.compile(rf"tag{_G}={_G}\\*['\"]")
_TAG_END = re.compile(r"\\*['\"]\s*\]")
_OWNER = re.compile(r"\]\s*(?:/\*[^*\n]{0,300}\*/\s*)?::\s*([\w.\-]{1,200}|<[\w\-]{1,60}>)")
_OUTPUT_OF = re.compile(r"output of ([\w.\-]{1,200})@")
_ON_CHIP_TAG = re.compile(r"window allocation|scratch|operand span|scoped memory")
_REACH = 3000
#: No memory on the chip is near this: a text cut before it names the memory can still be told apart.
_SURELY_HBM = 2 << 30

_WORDS = re.compile(
    rf"allocation_size_words{_G}<={_G}(?:std::numeric_limits<int32_t>::max\(\)|int32[_ ]max\b)"
    r"(?:(?:[\s;:,(]|\\[nrt]){1,8}(\d{1,18})(?=[\s;,)\\\"']))?"
)
_ANY_SHAPE = re.compile(r"(?<![\w\[])[a-z][a-z0-9]{0,12}\[\d[\d,]{0,100}\]")


def read_tpu_one_buffer(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such sentence in ``lines``, in text order. ``name`` is the input's."""
    found = [(m.start, _too_large(m)) for m in messages(lines, name, _HEAD, _REACH)]
    found += [(m.start, _too_many_words(m)) for m in messages(lines, name, _WORDS, 400)]
    found.sort(key=lambda pair: pair[0])
    yield from (report for _, report in found)


def _too_large(message: Message) -> MemoryReport:
    size = Size(int(message.head[1]))
    capacity = Size(int(message.head[2])) if message.head[2] else None
    space = message.find(_SPACE)
    where = space[1] if space else "hbm" if (capacity or 0) >= _SURELY_HBM else "onchip"
    allocation = _allocation(message, where, size)
    return message.report(
        "tpu-one-buffer",
        kind="hbm" if where == "hbm" else "host" if where == "host" else "onchip",
        target=chip(capacity) if where == "hbm" else None,
        fits=False,
        spaces=(Space(name=where, capacity=capacity, requested=size),),
        allocations=(allocation,),
        truncated=capacity is None and message.cut,
        notes=("The memory's size is all of it, before what the system reserves.",),
    )


def _allocation(message: Message, space: str, size: Size) -> Allocation:
    shape = _shape_at(message, message.find(_SHAPE))
    tag = _tag(message)
    scoped = message.find(_SCOPED) is not None
    owner = message.find(_OWNER)
    name = owner[1] if owner and not owner[1].startswith("<") else None
    if name is None and tag is not None:
        output = _OUTPUT_OF.match(tag)
        name = output[1] if output else None
    unpadded: int | None = None
    provenance: Provenance = "reported"
    if shape is not None and shape.padded_bytes == size:
        unpadded, provenance = shape.unpadded_bytes, "computed"
    on_chip = space not in ("hbm", "host")
    return Allocation(
        space=space,
        kind="scoped" if scoped or (on_chip and tag and _ON_CHIP_TAG.search(tag)) else "other",
        bytes=size,
        unpadded_bytes=unpadded,
        reported_bytes=size,
        shape=shape,
        name=name,
        tag=tag,
        provenance=provenance,
        line=message.lines.number_at(message.start),
    )


def _tag(message: Message) -> str | None:
    begin = message.find(_TAG)
    if begin is None:
        return None
    end = _TAG_END.search(message.lines.text, begin.end(), message.until)
    if end is None:
        return None
    message.end = max(message.end, end.end())
    return " ".join(message.lines.text[begin.end() : end.start()].split()) or None


def _shape_at(message: Message, found: re.Match[str] | None) -> Shape | None:
    if found is None:
        return None
    try:
        shape, end = Shape.parse_prefix(message.lines.text, found.end())
    except ParseError:
        return None
    message.end = max(message.end, end)
    return shape


def _too_many_words(message: Message) -> MemoryReport:
    count = message.head[1]
    place = message.find(_ANY_SHAPE)
    shape: Shape | None = None
    if place is not None:
        try:
            shape, _ = Shape.parse_prefix(message.lines.text, place.start())
        except ParseError:
            shape = None
    notes = ["An array may have at most 2147483647 words in memory; a word is several bytes."]
    if count is not None:
        notes.append(f"This one has {count} words.")
    allocations: tuple[Allocation, ...] = ()
    if shape is not None:
        line = message.lines.number_at(message.start)
        allocations = (
            Allocation(
                space="hbm",
                kind="other",
                bytes=shape.padded_bytes,
                unpadded_bytes=shape.unpadded_bytes,
                shape=shape,
                provenance="computed",
                line=line,
            ),
        )
    return message.report(
        "tpu-too-many-words", kind="other", fits=False, allocations=allocations, notes=tuple(notes)
    )
