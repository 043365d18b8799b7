"""Opening inputs: compressed, large, growing, in folders, and what goes wrong."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from xlamem.errors import InputError, NotAReportError, NotReadableError, UnknownTargetError
from xlamem.readers import read, read_all
from xlamem.readers.follow import _Tail, follow
from xlamem.readers.input import open_input
from xlamem.readers.scan import WHOLE, windows
from xlamem.readers.tpu_logs import complete, read_last
from xlamem.units import parse_size

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
UNET = LOGS / "unet_kernel_v2.log"
NOISE = b"2025-06-03 07:41:11,123 INFO step 17 loss 0.123 tokens/s 10234 grad norm 1.23\n"


def test_the_one_line_of_an_exception_is_text() -> None:
    assert read(SHORT.strip()).program == "jit_f"
    assert read(SHORT.encode()).program == "jit_f"
    with pytest.raises(NotReadableError, match="neither a path, an open file nor text: int"):
        read(3)  # type: ignore[arg-type]


def test_a_path_an_open_file_and_the_text_are_the_same() -> None:
    text = UNET.read_text()
    expected = read(UNET).allocations
    assert read(str(UNET)).allocations == expected
    assert read(text).allocations == expected
    assert read(io.StringIO(text)).allocations == expected
    with UNET.open("rb") as file:
        assert read(file).allocations == expected


@pytest.mark.parametrize(
    "compress",
    [gzip.compress, bz2.compress, lzma.compress, zstandard.compress],
    ids=["gz", "bz2", "xz", "zst"],
)
def test_compressed_logs(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "whatever"
    data = compress(UNET.read_bytes())
    path.write_bytes(data)
    assert len(read(path).allocations) == 12


def test_a_compressed_log_that_breaks_off(tmp_path: Path) -> None:
    # Stored without compression, so that its first part is readable.
    data = gzip.compress(UNET.read_bytes(), compresslevel=0)
    path = tmp_path / "log.gz"
    path.write_bytes(data[:6000])
    report = read(path)
    assert 0 < len(report.allocations) < 12
    assert "compressed data break off" in report.notes[-1]


@pytest.mark.parametrize("harm", ["none", "zeros", "cut", "cut between", "junk", "header"])
@pytest.mark.parametrize(
    "compress",
    [gzip.compress, bz2.compress, lzma.compress, zstandard.compress],
    ids=["gz", "bz2", "xz", "zst"],
)
def test_damaged_compressed_data(compress: Callable[[bytes], bytes], harm: str, tmp_path: Path) -> None:
    """Several streams in a file; what came before the damage is kept, and the damage is told."""
    data = UNET.read_bytes()
    first, second = compress(data[:5000]), compress(data[5000:])
    path = tmp_path / "log"
    path.write_bytes(
        {
            "none": first + second,
            "zeros": first + second + bytes(512),
            "cut": first + second[:-20],
            "cut between": first + second[:3],
            "junk": first + second + b"x" * 40,
            "header": first + b"\xff" * 12 + second[12:],
        }[harm]
    )
    opened = open_input(path)
    found = opened.read()
    opened.close()
    assert data.startswith(found)
    assert len(found) >= 5000
    if harm in ("none", "zeros"):
        assert (found, opened.damage.text) == (data, "")
    else:
        assert "its compressed data break off" in opened.damage.text


def test_damage_in_the_middle_of_a_stream_keeps_what_came_before(tmp_path: Path) -> None:
    data = b"".join(b"%d\n" % (n * n * 7919 % 1_000_003) for n in range(200_000))
    for compress in (gzip.compress, lzma.compress):
        packed = bytearray(compress(data))
        packed[len(packed) // 2 : len(packed) // 2 + 64] = bytes(64)
        path = tmp_path / "log"
        path.write_bytes(packed)
        opened = open_input(path)
        found = opened.read()
        opened.close()
        assert found[: len(data) // 3] == data[: len(data) // 3]
        assert "its compressed data break off" in opened.damage.text


def test_powershell_writes_utf16(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(UNET.read_text(), encoding="utf-16")
    assert len(read(path).allocations) == 12


def test_runs_of_nul_left_by_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"\0" * 20000 + UNET.read_bytes())
    assert len(read(path).allocations) == 12


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "no memory report in an empty input"), (b"all went well\n", "no memory report in 14B of text")],
)
def test_nothing_to_report_says_what_was_looked_for(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(content)
    with pytest.raises(NotAReportError, match=words) as caught:
        read(path)
    assert "looked for" in str(caught.value)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("x")
    with pytest.raises(NotReadableError, match=r"no such file; did you mean .*train.log\?"):
        read(tmp_path / "trian.log")
    with (tmp_path / "train.log").open() as file:
        pass
    with pytest.raises(NotReadableError, match="closed file"):
        read(file)
    with pytest.raises(NotReadableError, match="it gives int"):
        read(Mock(spec=["read"], read=lambda: 3))
    binary = tmp_path / "program"
    binary.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(NotReadableError, match="binary"):
        read(binary)
    with pytest.raises(UnknownTargetError, match="v5"):
        read(UNET, target="v55")


def test_the_users_own_figures_win() -> None:
    report = read(UNET, target="v5e", hbm=parse_size("32G"))
    assert report.target is not None
    assert (report.target.name, report.target.inferred) == ("v5e", False)
    assert report.space is not None
    assert (report.space.capacity, report.space.over, report.fits) == (2**35, None, True)
    assert "was given; the input says 7.48GiB" in report.notes[-1]
    with pytest.raises(InputError, match="of a TPU, and h100 is a GPU"):
        read(UNET, target="h100")


def test_a_capacity_is_bytes_or_text() -> None:
    for hbm in (2**34, "16G", "16 gib", str(2**34), np.int64(2**34)):
        space = read(UNET, hbm=hbm).space  # type: ignore[arg-type]
        assert space is not None
        assert space.capacity == 2**34
    for bad in (0, -1, True, 1.5, 2**64, "0", "junk", "\u0661\u0666G", "99999999999999999999E", b"16G"):
        with pytest.raises(InputError):
            read(UNET, hbm=bad)  # type: ignore[arg-type]


def test_standard_input_that_is_closed_or_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(UNET.read_text()))
    assert len(read("-").allocations) == 12
    monkeypatch.setattr("sys.stdin", None)
    assert len(read(UNET).allocations) == 12
    with pytest.raises(NotReadableError, match="standard input is closed"):
        read("-")


def test_a_report_deep_in_a_large_log_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    lines = 3 * WHOLE // len(NOISE)
    with path.open("wb") as file:
        file.write(NOISE * lines)
        file.write(UNET.read_bytes())
        file.write(NOISE * lines)
    report = read(path)
    assert len(report.allocations) == 12
    assert report.source.line == lines + 58


@settings(max_examples=30, deadline=None)
@given(places=st.lists(st.integers(0, 400_000), max_size=4), tail=st.booleans())
def test_every_hit_is_in_a_window_with_its_line_number(places: list[int], tail: bool) -> None:
    mark = b"RESOURCE_EXHAUSTED: here\n"
    lines = [NOISE] * (2 * WHOLE // len(NOISE))
    for place in places:
        lines[place % len(lines)] = mark
    data = b"".join(lines) + (b"no end" if tail else b"")
    found: list[int] = []
    last = 0
    for window in windows(io.BytesIO(data)):
        assert window.first_line > last
        for offset, line in enumerate(window.data.splitlines(keepends=True)):
            last = window.first_line + offset
            if line == mark:
                found.append(last)
    assert found == sorted({place % len(lines) + 1 for place in places})


def test_a_folder_of_logs(tmp_path: Path) -> None:
    (tmp_path / "rank0").mkdir()
    (tmp_path / "rank0" / "a.log").write_bytes(UNET.read_bytes())
    (tmp_path / "b.log.gz").write_bytes(gzip.compress((LOGS / "0.0.7_v5e_mlp.log").read_bytes()))
    (tmp_path / "picture.png").write_bytes(bytes(range(256)) * 40)
    reports = read_all(tmp_path)
    assert [(os.path.basename(r.source.name), len(r.allocations)) for r in reports] == [
        ("b.log.gz", 20),
        ("a.log", 12),
    ]


def test_a_growing_log_tells_each_report_once(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    text = UNET.read_bytes()

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            file.write(NOISE * 10)
            file.write(text[:5000])
            time.sleep(0.4)
            file.write(text[5000:])
            time.sleep(2.5)
            file.write(NOISE * 10)

    writer = threading.Thread(target=write)
    writer.start()
    reports = list(follow(str(path), seconds=6))
    writer.join()
    assert [(len(r.allocations), r.source.line) for r in reports] == [(12, 68)]


def test_a_log_that_never_rests_is_told_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(UNET.read_bytes())
    done = threading.Event()

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            while not done.wait(0.1):
                file.write(NOISE)

    writer = threading.Thread(target=write)
    writer.start()
    started = time.monotonic()
    try:
        report = next(follow(str(path), seconds=15))
    finally:
        done.set()
        writer.join()
    assert len(report.allocations) == 12
    assert time.monotonic() - started < 8


def test_a_file_renamed_over_the_followed_one_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(NOISE * 10)

    def rotate() -> None:
        time.sleep(0.7)
        with path.open("ab") as file:
            file.write(SHORT.encode())
        new = tmp_path / "new"
        new.write_bytes(NOISE * 40 + UNET.read_bytes())
        os.replace(path, tmp_path / "train.log.1")
        os.replace(new, path)

    writer = threading.Thread(target=rotate)
    writer.start()
    reports = list(follow(str(path), seconds=4.5))
    writer.join()
    assert [(len(r.allocations), r.source.line) for r in reports] == [(0, 11), (12, 98)]


def test_what_was_told_long_ago_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlamem.readers.follow._KEPT", 1 << 14)
    path = tmp_path / "train.log"
    path.write_bytes(NOISE * 10_000)
    tail = _Tail(str(path))
    while tail.read():
        assert len(tail.text) < 1 << 16
    assert tail.lines_before + tail.text.count(b"\n") == 10_000
    tail.close()


SHORT = (
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total "
    "memory required for HLO temporaries (20.00G) exceeds available HBM (15.75G). HLO module: jit_f.\n"
)


def test_libtpus_own_log_completes_the_short_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LOG_DIR", str(tmp_path))
    text = (LOGS / "0.0.42.1_v5e_args_stderr1.log").read_text()
    log = text[: text.index("TIME lower")]
    (tmp_path / "tpu_driver.ERROR").write_text(log)
    short = read(SHORT)
    whole = complete(short, time.time())
    assert len(whole.allocations) > 10
    assert "libtpu wrote within 15 minutes" in " ".join(whole.notes)
    # Another run's: hours ago, or other figures.
    assert complete(short, time.time() - 7200).allocations == ()
    assert complete(read(SHORT.replace("20.00G", "21.00G")), time.time()).allocations == ()
    assert read_last()[0].space is not None


def test_no_libtpu_logs_is_a_clear_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LOG_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(NotAReportError, match="TPU_LOG_DIR"):
        read_last()
