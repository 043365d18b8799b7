"""``compiled.memory_analysis()`` printed into a log: ``CompiledMemoryStats(...)``, or its fields one by one.

Its figures are the compiler's, in bytes. On TPU ``temp_size_in_bytes`` can be 0 although there are
temporaries, and ``peak_memory_in_bytes`` counts VMEM with the HBM, so neither is taken for what a program
needs there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import source
from xlamem.report import MemoryReport, Space
from xlamem.units import Size

_FIELD = re.compile(
    r"(?<![a-z_])(generated_code|argument|output|alias|temp)_size_in_bytes['\"]?\s*[=:]?\s*(\d{1,20})"
    r"(?=[,)}\]'\" ]|\n(?!\d))"
)
_SPACE_FIELD = {
    "generated_code": "overlays",
    "argument": "arguments",
    "output": "outputs",
    "alias": "aliased",
    "temp": "temps",
}
#: Two fields of one record are no farther apart than this, in characters.
_APART = 400


def read_memory_stats(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such record in ``lines``. The program was compiled; whether it fits is not said."""
    found: dict[str, Size] = {}
    start = end = 0
    for match in _FIELD.finditer(lines.text):
        if found and (match[1] in found or match.start() - end > _APART):
            yield from _report(lines, name, found, start, end)
            found = {}
        if not found:
            start = match.start()
        found[match[1]] = Size(int(match[2]))
        end = match.end()
    yield from _report(lines, name, found, start, end)


def _report(lines: Lines, name: str, found: dict[str, Size], start: int, end: int) -> Iterator[MemoryReport]:
    if not {"argument", "output", "temp"} <= found.keys():
        return
    used = found["argument"] + found["output"] + found["temp"] - found.get("alias", Size(0))
    rows = {_SPACE_FIELD[key]: value for key, value in found.items()}
    yield MemoryReport(
        kind="success",
        severity="info",
        source=source(lines, name, "memory-stats", start, end),
        message="CompiledMemoryStats",
        spaces=(Space("hbm", used=used, **rows),),
        notes=(
            "What is used is arguments + outputs - aliased + temporaries; on TPU the temporaries can be missing.",
        ),
    )
