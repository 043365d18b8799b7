"""Single sentences about a GPU's memory: the compiler's limit, a constant, and NCCL's own buffers.

::

    The byte size of input/output arguments (131344632216) exceeds the base limit (20236835225).
    Failed to allocate 98697216 bytes for new constant
    NCCL operation ncclCommInitRank(...) failed: unhandled cuda error ... 'Cuda failure 2 'out of memory''
    NCCL WARN Cuda failure 'out of memory' / NCCL WARN Failed to CUDA calloc 6291456 bytes
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.readers.lines import Lines
from xlamem.readers.sentence import figure, matches, program_after, sentence, source
from xlamem.report import MemoryReport, Space

_LINE = re.compile(
    r"""
      (?P<limit>The\s+byte\s+size\s+of\s+input/output\s+arguments
        (?:\s*\((?P<arguments>\d{1,20})\)(?:\s+exceeds\s+the\s+base\s+limit(?:\s*\((?P<base>\d{1,20})\))?)?)?)
    | (?P<constant>Failed\s+to\s+allocate\s+(?P<bytes>\d{1,20})\s+bytes\s+for\s+new\s+constant)
    | (?P<operation>NCCL\s+operation\s+[^\n]{1,300}?\bfailed:[^\n]{0,300}?
        (?:[Oo]ut\s+of\s+memory|OutOfMemory)'{0,3})
    | (?P<warning>NCCL\s+WARN\s+(?:Cuda|HIP|Hip)\s+failure\s+[^\n]{0,20}?'?out\s+of\s+memory'?)
    | (?P<calloc>NCCL\s+WARN\s+Failed\s+to\s+(?:CUDA|HIP)\s+(?:calloc|malloc)(?:\s+async)?
        \s+(?P<nccl>\d{1,20})\s+bytes\b)
    """,
    re.VERBOSE,
)
_START = re.compile(r"The\s+byte\s+size\s|Failed\s+to\s+allocate\s|NCCL\s+(?:operation|WARN)")


def read_gpu_lines(lines: Lines, name: str) -> Iterator[MemoryReport]:
    """Every such sentence in ``lines``. ``name`` is the input's, for the reports' source."""
    for match in matches(_START, _LINE, lines.text):
        if match["limit"]:
            yield from _limit(match, lines, name)
        elif match["constant"]:
            yield _constant(match, lines, name)
        else:
            yield _nccl(match, lines, name)


def _limit(match: re.Match[str], lines: Lines, name: str) -> Iterator[MemoryReport]:
    if match["arguments"] is None:
        return
    yield MemoryReport(
        kind="hbm",
        severity="warning",  # the compiler goes on, and the program may fit the allocator that there is
        source=source(lines, name, "gpu-argument-limit", *match.span()),
        message=sentence(lines.text, *match.span()),
        backend="gpu",
        spaces=(
            Space(name="hbm", used=figure(match["arguments"], None), capacity=figure(match["base"], None)),
        ),
        notes=(
            "The figure is the program's arguments and results together, the limit what the compiler plans "
            "with.",
        ),
    )


def _constant(match: re.Match[str], lines: Lines, name: str) -> MemoryReport:
    asked = figure(match["bytes"], None)
    return MemoryReport(
        kind="runtime-alloc",
        severity="error",
        source=source(lines, name, "gpu-constant", *match.span()),
        message=sentence(lines.text, *match.span()),
        backend="gpu",
        program=program_after(lines.text, match.end()),
        fits=False,
        spaces=(Space(name="hbm", requested=asked),),
        notes=("It was asked for a constant of the program, while the program was loaded.",),
    )


def _nccl(match: re.Match[str], lines: Lines, name: str) -> MemoryReport:
    return MemoryReport(
        kind="runtime-alloc",
        severity="error",
        source=source(lines, name, "nccl", *match.span()),
        message=sentence(lines.text, *match.span()),
        backend="gpu",
        program=program_after(lines.text, match.end()),
        fits=False,
        spaces=(Space(name="hbm", requested=figure(match["nccl"], None)),),
        notes=("NCCL takes its buffers from the device itself, outside the memory that XLA has taken.",),
    )
