"""A GPU kernel that wants more shared memory than a block can have: not the device's memory at all.

::

    Shared memory size limit exceeded: requested 4194304, available: 101376
    Shared memory requested exceeds device resources.
    out of resource: shared memory, Required: 131072, Hardware limit: 101376. (Triton's own)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import figure, matches, program_after, sentence, source
from xlamem.report import MemoryReport, Space

_WHOLE = r"(?=[^\S\n]|\n(?!\d)|[\\,;\"')\]]|\.(?!\d))"
_SHARED = re.compile(
    rf"""
      (?P<xla>Shared\s+memory\s+size\s+limit\s+exceeded
        (?::\s*requested:?\s*(?P<asked>\d{{1,20}}){_WHOLE}(?:,\s*available:?(?:\s*(?P<available>\d{{1,20}}){_WHOLE})?)?)?)
    | (?P<launch>Shared\s+memory\s+requested\s+exceeds\s+device\s+resources)
    | (?P<triton>out\s+of\s+resource:\s*shared\s+memory
        (?:,\s*Required:\s*(?P<required>\d{{1,20}}){_WHOLE}(?:,\s*Hardware\s+limit:(?:\s*(?P<limit>\d{{1,20}}){_WHOLE})?)?)?)
    """,
    re.VERBOSE,
)
_START = re.compile(r"Shared\s+memory\s|out\s+of\s+resource")


def read_gpu_kernel(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such sentence in ``lines``. ``name`` is the input's, for the reports' source."""
    for match in matches(_START, _SHARED, lines.text):
        notes = [
            "A kernel's shared memory is on the chip, a few hundred kilobytes at most; it is not the GPU's "
            "memory."
        ]
        if match["triton"]:
            notes.append("The sentence is Triton's own; which framework called it, it does not say.")
        yield MemoryReport(
            kind="kernel-shared-memory",
            severity="error",
            source=source(lines, name, "gpu-shared-memory", *match.span()),
            message=sentence(lines.text, *match.span()),
            backend="gpu",
            program=program_after(lines.text, match.end()),
            fits=False,
            spaces=(
                Space(
                    name="shared",
                    requested=figure(match["asked"] or match["required"], None),
                    capacity=figure(match["available"] or match["limit"], None),
                ),
            ),
            notes=tuple(notes),
        )
