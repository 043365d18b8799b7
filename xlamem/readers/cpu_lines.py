"""XLA's CPU backend out of memory: ``Out of memory allocating 17592186044416 bytes.``

Compilers and other libraries say nearly the same: theirs begin in small letters or with other words, or
print the number with commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import BYTES, WORD, figure, program_after, sentence, source
from xlamem.report import MemoryReport, Space

_LINE = re.compile(
    rf"{WORD}Out\s+of\s+memory\s+allocating\s+{BYTES}\.?(?!\s+(?:after\s+a\s+total|\(allocated))"
)


def read_cpu_lines(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such sentence in ``lines``. ``name`` is the input's, for the reports' source."""
    text = lines.text
    for match in _LINE.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if "cupy" in line:
            continue
        yield MemoryReport(
            kind="host",
            severity="error",
            source=source(lines, name, "cpu-oom", *match.span()),
            message=sentence(text, *match.span()),
            backend="cpu",
            program=program_after(text, match.end()),
            fits=False,
            spaces=(Space(name="host", requested=figure(match[1], None)),),
        )
