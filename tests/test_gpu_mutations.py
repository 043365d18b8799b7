"""Whatever happens to a log: no exception, no hang, and no figure that is not in the text."""

from __future__ import annotations

import re
import time
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_gpu_actions import READERS, reports

from xlamem.advice.gpu_actions import actions
from xlamem.errors import ParseError
from xlamem.readers.lines import normalise
from xlamem.report import MemoryReport
from xlamem.shape import Shape
from xlamem.units import size_from

LOGS = {
    p.name: p.read_text()
    for p in sorted((Path(__file__).parent.parent / "fixtures" / "logs").glob("[cg]pu_*.log"))
}

_SIZE = re.compile(r"(?<![\d.])(\d{1,20}(?:\.\d{1,6})?) ?([KMGTPE](?:i?B)?|B)?(?![\d.]*\d)")
_COMMAS = re.compile(r"\d{1,3}(?:,\d{3})+")
_SHAPE = re.compile(r"[a-z]\w*\[[\d,]*\]")
_TENSOR = re.compile(r"shape ?\[([\d, ]*)\]")
_PAIRS = re.compile(r"(\d{1,12}) Chunks of size (\d{1,20}(?:\.\d+)?)|(?<!\d)(\d{1,20}), (\d{1,12})(?!\d)")
_CHUNK = re.compile(r"of size (\d{1,20})")
#: Bytes of TensorFlow's and HLO's elements.
_WIDTHS = (1, 2, 4, 8, 16)


def figures_in(text: str) -> set[int]:
    """Every number of bytes that ``text`` prints, and what its shapes and its counts of chunks multiply to."""
    found: set[int] = set()
    for number, unit in _SIZE.findall(text):
        if unit or "." not in number:
            found.add(int(size_from(number, unit)))
        if "." not in number:
            found.add(int(number))
    found.update(int(number.replace(",", "")) for number in _COMMAS.findall(text))
    for shape in _SHAPE.findall(text):
        try:
            found.add(Shape.parse(shape).unpadded_bytes)
        except ParseError:
            continue
    for dims in _TENSOR.findall(text):
        count = 1
        for size in dims.split(","):
            count *= int(size) if size.strip().isdecimal() else 1
        found.update(count * width for width in _WIDTHS)
    for chunks, size, bytes_, times in _PAIRS.findall(text):
        if chunks:
            found.add(int(chunks) * int(float(size)))
        else:
            found.add(int(bytes_) * int(times))
    sizes = _CHUNK.findall(text)
    found.update(int(size) * sizes.count(size) for size in set(sizes))
    # Chunks that were counted may belong to several dumps.
    found.update(int(size) * n for size in set(sizes) for n in range(1, sizes.count(size)))
    return found


def figures_of(report: MemoryReport) -> set[int]:
    found: set[int] = set()
    for space in report.spaces:
        for field in fields(space):
            value = getattr(space, field.name)
            if field.name != "name" and isinstance(value, int):
                found.add(int(value))
    for allocation in report.allocations:
        found.add(int(allocation.bytes))
        found.update(int(v) for v in (allocation.unpadded_bytes, allocation.reported_bytes) if v is not None)
    return found


def check(text: str) -> None:
    seen = figures_in(normalise(text).text.replace("\\", " "))
    for report in reports(text):
        assert report.message
        assert report.source.line is not None
        assert report.source.end_line is not None
        assert 1 <= report.source.line <= report.source.end_line
        missing = figures_of(report) - seen
        assert not missing, (report.source.format, missing)
        actions(report)


@pytest.mark.parametrize("name", LOGS)
def test_the_logs_themselves(name: str) -> None:
    check(LOGS[name])
    assert reports(LOGS[name])


@pytest.mark.parametrize("name", LOGS)
def test_a_cut_anywhere_gives_no_figure_of_its_own(name: str) -> None:
    text = LOGS[name]
    whole = figures_in(text)
    for at in range(0, len(text), 7):
        for report in reports(text[:at]):
            # What was cut is no figure: each one is in the whole text, not only in the piece.
            assert figures_of(report) <= whole, (at, report.source.format)


GARBAGE = st.sampled_from(
    [
        "",
        "Size: ",
        "BufferAssignment stats:",
        "Peak buffers:",
        "Buffer 1:",
        "123456",
        "Stats: ",
        "Limit: 5",
        "Out of memory while trying to allocate",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB",
        "E1130 16:17:00.193061   11420 file.cc:3781] something else",
        "\x00\x1b[31m",
        "==========================",
        "InUse at 7f of size 77 next 3",
        "Ran out of memory in memory space hbm. Used 1.00G of 2.00G hbm.",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    lines = LOGS[draw(st.sampled_from(sorted(LOGS)))].splitlines()
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        match draw(st.integers(0, 5)):
            case 0:
                lines.insert(at, draw(GARBAGE))
            case 1 if at + 1 < len(lines):
                lines[at : at + 2] = [lines[at] + lines[at + 1]]
            case 2 if lines:
                lines[at] = " " * draw(st.integers(0, 9)) + lines[at].strip()
            case 3 if lines:
                lines[at] = lines[at][: draw(st.integers(0, 80))]
            case 4 if lines:
                lines[at] = lines[at][draw(st.integers(0, 80)) :]
            case 5 if lines:
                del lines[at]
            case _:
                pass
    end = draw(st.sampled_from(["\n", "\r\n", " ", "\\n", ""]))
    text = end.join(lines)
    return text[draw(st.integers(0, 200)) :] if draw(st.booleans()) else text


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
@example("")
@example("Buffer 1:\nSize: 1.00GiB\nShape: f32[268435456]\n")
@example("Out of memory while trying to allocate 99999999999999999999999 bytes.\n")
@example("Out of memory while trying to allocate " + "9" * 5000 + " bytes.\n")
@example("OOM when allocating tensor with shape[" + "9" * 150 + "] and type float on /gpu:0\n")
def test_mutations(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    "piece",
    [
        "Allocator (a) ran out of memory trying to allocate ",
        "InUse at 7f of size 1 ",
        "Out of memory while trying to allocate ",
        "NCCL operation x failed: ",
        "cuMemAllocAsync failed to allocate 1 bytes ",
        "Stats: Limit: 1 ",
        "Buffer 1: Size: ",
        "x\\n\\t",
        "failed to allocate 1.00GiB from device: ",
        "shape[1,",
        "a" * 100 + " ",
        "CUDA out of memory. Tried to allocate ",
        "Histogram of current allocation: ; 1, 2 ",
    ],
)
def test_time_grows_with_the_length_only(piece: str) -> None:
    def seconds(count: int) -> float:
        lines = normalise(piece * count)
        start = time.perf_counter()
        for reader in READERS:
            for _ in reader(lines, "x"):
                pass
        return time.perf_counter() - start

    seconds(200)
    small, large = seconds(1000), seconds(8000)
    assert large < 10
    assert large < 0.5 or large < 30 * small
