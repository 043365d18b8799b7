"""The stretches of a large log that are read: that they hold every message, and no more than a little else."""

from __future__ import annotations

import base64
import gzip
import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tpu_forms import OWN

from xlamem.errors import NotAReportError, NotReadableError
from xlamem.readers import input as inputs
from xlamem.readers import read, read_all, scan
from xlamem.readers.lines import normalise
from xlamem.readers.scan import windows
from xlamem.readers.usage_in_log import read_usage_in_log

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
UNET = LOGS / "unet_kernel_v2.log"
NOISE = b"2025-06-03 07:41:11,123 INFO step 17 loss 0.123 tokens/s 10234 grad norm 1.23\n"
PAD = NOISE * (scan.WHOLE // len(NOISE) + 1)
TEXTS = {
    **{path.name: path.read_bytes() for path in sorted(LOGS.glob("*.log"))},
    **{name: text[0].encode() for name, text in OWN.items()},
}

#: Sentences of a kernel's compiler that name neither memory nor an error code.
LONE = ("mosaic", "mosaic, no stop", "scoped figures alone")


def told(data: bytes) -> list[tuple[str, str, int]]:
    return [(r.kind, r.message, len(r.allocations)) for r in read_all(data)]


@pytest.mark.parametrize("searched", [scan._ALL_UNTIL, 0], ids=["all", "needles"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_form_is_found_in_the_middle_of_a_log(
    name: str, searched: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if searched == 0 and name in LONE:
        pytest.skip("found in the first megabytes and at the end only, for the sake of speed")
    monkeypatch.setattr(scan, "_ALL_UNTIL", searched)
    text = TEXTS[name] if TEXTS[name].endswith(b"\n") else TEXTS[name] + b"\n"
    assert told(PAD + text + PAD) == told(NOISE + text)


@pytest.mark.parametrize(
    "line",
    [
        b"step 5 loss 0.1 device memory: allocated 3.05 GiB, exceeds the last\n",
        b"W1130 10:00:00.000001 11 x.py:5] memory limit exceeded\n",
        b"step 5 GPU memory 3.05 GiB\n",
        base64.b64encode(random.Random(0).randbytes(9 << 20)),
        b"\0" * 4096,
    ],
    ids=["allocated", "exceeded", "memory", "one line", "NUL"],
)
def test_ordinary_lines_about_memory_are_not_read(line: bytes) -> None:
    data = line * ((12 << 20) // len(line))
    assert sum(len(w.data) for w in windows(io.BytesIO(data))) < 1 << 20


def test_many_failures_are_one_window_and_nothing_is_read_twice() -> None:
    data = b"E1130 out of memory\n" * 200_000
    found = list(windows(io.BytesIO(data)))
    assert len(found) == 1
    assert b"".join(w.data for w in found) == data


@pytest.mark.parametrize(
    "row", [b"InUse at 7f4b7c000000 of size %d next 1\n", b"Chunk at 0x%x of size 256\n"]
)
def test_a_long_dump_of_an_allocator_is_one_window(row: bytes) -> None:
    dump = b"BFCAllocator dump for GPU_0_bfc\n" + b"".join(row % i for i in range(60_000))
    found = [w for w in windows(io.BytesIO(PAD + dump + PAD * 2)) if b"dump for" in w.data]
    assert len(found) == 1
    assert dump in found[0].data


@pytest.mark.parametrize("at", range(-9, 3))
def test_what_stands_before_a_phrase_is_kept_across_chunks(at: int) -> None:
    first = scan._CHUNK * 5 // len(NOISE)
    lines = [NOISE] * (first * 3)
    lines[first + 5 * at] = b"the host\n"
    for between in range(1, 90, 8):
        data = list(lines)
        data[first + 5 * at + between] = b"Ran out of memory\n"
        assert any(
            b"the host" in w.data and b"Ran out" in w.data for w in windows(io.BytesIO(b"".join(data)))
        )


def test_a_log_that_was_cut_while_open_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(opened: inputs.Input) -> bytes:
        raise AssertionError

    monkeypatch.setattr(inputs.Input, "read", never)
    hole = b"\0" * (20 << 20)
    assert len(read(gzip.compress(hole + UNET.read_bytes() + PAD)).allocations) == 12
    with pytest.raises(NotAReportError):
        read(gzip.compress(hole))


def test_a_dump_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_MAX_DUMP", 1 << 20)
    with pytest.raises(NotReadableError, match="is larger than 1MiB"):
        read(b"HloModule x\n" + PAD * 5)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_large_utf16_is_decoded_in_pieces(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_PIECE", 1001)
    data = ("\ufeff" + PAD.decode() + "\N{GRINNING FACE}" + UNET.read_text() + PAD.decode()).encode(encoding)
    report = read(data)
    assert len(report.allocations) == 12
    assert report.source.line == read(PAD + UNET.read_bytes()).source.line


BEGUN = "Largest program allocations in hbm:\n1. Size: 3G\nOperator: "


def repeated(piece: str, size: int = 450_000) -> str:
    return piece * (size // len(piece))


@pytest.mark.parametrize(
    "text",
    [
        repeated("[type.googleapis.com/"),
        BEGUN + repeated("\n") + "x",
        BEGUN + repeated("(\n") + "x",
        "Total hbm usage >= 5.00G:\n" + repeated("program 5M "),
        repeated("Total bytes used: 5 "),
        repeated("Total bytes used: 5 ("),
        repeated("Memory Space: default (color=0)\n"),
        repeated("Memory Space: default (color=0)\nTotal bytes: 5\n"),
    ],
    ids=lambda text: text[-20:].strip(),
)
def test_repeated_beginnings_take_linear_time(text: str) -> None:
    # Minutes if it were quadratic.
    list(_reports(text))


def _reports(text: str) -> Iterator[object]:
    try:
        yield from read_all(text + "\n")
    except NotAReportError:
        return


def test_a_log_of_many_usage_reports() -> None:
    row = "    1.95GiB(  5%);    1.95GiB;   4194926592;                1; f32[524288,1000]\n"
    table = "Memory Space: default (color=0)\nTotal bytes: 38863540736 (36.19GiB)\n" + row * 140
    lines = normalise(f"x\n{table}" * 300)
    found = list(read_usage_in_log(lines, "x.log"))
    assert [r.source.line for r in found] == [2 + i * 143 for i in range(300)]
    assert {len(r.allocations) for r in found} == {140}
    assert found[1].allocations[0].line == 2 + 143 + 2
