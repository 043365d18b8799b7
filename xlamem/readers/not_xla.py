"""Out-of-memory messages of other libraries that share the GPU, recognised so that nobody looks in XLA.

::

    CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 6.00 GiB total capacity; 781.50 MiB already
    allocated; 1.03 GiB free; 1.24 GiB reserved in total by PyTorch)
    CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 23.50 GiB of which 1.66 GiB
    is free. Including non-PyTorch memory, this process has 20.81 GiB memory in use. Of the allocated memory
    12.09 GiB is allocated by PyTorch, and 4.84 GiB is reserved by PyTorch but unallocated.
    cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated so far: ...)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import figure, matches, sentence, source
from xlamem.report import MemoryReport, Space
from xlamem.units import Size

_HEAD = re.compile(
    r"(?P<torch>(?:CUDA|HIP|XPU|NPU|MUSA)\s+out\s+of\s+memory\.\s+Tried\s+to\s+allocate)"
    r"|(?P<cupy>cupy[\w.]{0,60}OutOfMemoryError:\s*Out\s+of\s+memory\s+allocating)"
)
_START = re.compile(r"CUDA\s+out|HIP\s+out|XPU\s+out|NPU\s+out|MUSA\s+out|cupy")
_S = r"(\d{1,20}(?:\.\d{1,6})?)\s*(bytes\b|[KMGTPE]i?B(?![A-Za-z0-9]))"
_ASKED = re.compile(rf"\s+{_S}")
#: Where each figure stands, in either wording.
_FIGURES = (
    ("capacity", re.compile(rf"{_S}\s+total\s+capacity|total\s+capac(?:i)?ty\s+of\s+{_S}")),
    ("free", re.compile(rf"{_S}\s+free\b|of\s+which\s+{_S}\s+is\s+free")),
    ("used", re.compile(rf"{_S}\s+already\s+allocated|{_S}\s+is\s+allocated\s+by\s+PyTorch")),
    ("reserved", re.compile(rf"{_S}\s+reserved\s+in\s+total\s+by\s+PyTorch|{_S}\s+cached\b")),
)
_SAID = (
    re.compile(rf"(?:Including\s+non-PyTorch\s+memory,\s+)?this\s+process\s+has\s+{_S}\s+memory\s+in\s+use"),
    re.compile(rf"Process\s+\d{{1,10}}\s+has\s+{_S}\s+memory\s+in\s+use"),
    re.compile(rf"{_S}\s+is\s+reserved\s+by\s+PyTorch\s+but\s+unallocated"),
)
_COMMAS = re.compile(r"\s+(\d{1,3}(?:,\d{3}){0,6}|\d{1,20})\s+bytes\b")
_LENGTH = 900


def read_not_xla(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such message in ``lines``, with its figures. ``name`` is the input's, for the reports' source."""
    text = lines.text
    heads = list(matches(_START, _HEAD, text))
    for head, following in zip(heads, [*heads[1:], None], strict=False):
        until = min(following.start() if following else len(text), head.end() + _LENGTH)
        yield _torch(head, until, lines, name) if head["torch"] else _cupy(head, until, lines, name)


def _size(groups: tuple[str | None, ...]) -> Size | None:
    """The first of the alternatives that matched."""
    for number, unit in zip(groups[::2], groups[1::2], strict=True):
        if number is not None and unit is not None:
            return figure(number, None if unit == "bytes" else unit)
    return None


def _torch(head: re.Match[str], until: int, lines: Lines, name: str) -> MemoryReport:
    text = lines.text[: until + 1]
    end = head.end()
    asked = _ASKED.match(text, end)
    if asked is not None:
        end = asked.end()
    figures: dict[str, Size | None] = {"requested": _size(asked.groups()) if asked else None}
    for field, pattern in _FIGURES:
        found = pattern.search(text, head.end(), until)
        if found is not None:
            figures[field] = _size(found.groups())
            end = max(end, found.end())
    notes = ["The message is PyTorch's own, about PyTorch's own memory: XLA has no part in it."]
    for pattern in _SAID:
        for found in pattern.finditer(text, head.end(), until):
            said = sentence(text, *found.span())
            notes.append(f"{said[0].upper()}{said[1:]}.")
            end = max(end, found.end())
    return _report("pytorch-oom", head.start(), end, figures, notes, lines, name)


def _cupy(head: re.Match[str], until: int, lines: Lines, name: str) -> MemoryReport:
    asked = _COMMAS.match(lines.text, head.end(), until)
    size = Size(int(asked[1].replace(",", ""))) if asked else None
    notes = ["The message is CuPy's own, about CuPy's own memory: XLA has no part in it."]
    end = asked.end() if asked else head.end()
    return _report("cupy-oom", head.start(), end, {"requested": size}, notes, lines, name)


def _report(
    form: str,
    start: int,
    end: int,
    figures: dict[str, Size | None],
    notes: list[str],
    lines: Lines,
    name: str,
) -> MemoryReport:
    return MemoryReport(
        kind="not-xla",
        severity="error",
        source=source(lines, name, form, start, end),
        message=sentence(lines.text, start, end),
        backend="gpu",
        fits=False,
        spaces=(Space(name="hbm", **figures),),
        notes=tuple(notes),
    )
