"""TensorFlow's sentence, whose bytes are computed, and the messages that are not XLA's."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlamem.readers.lines import normalise
from xlamem.readers.not_xla import read_not_xla
from xlamem.readers.tensorflow import read_tensorflow
from xlamem.report import MemoryReport, Space

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
GIB = 1 << 30
MIB = 1 << 20


def tensorflow(text: str) -> list[MemoryReport]:
    return list(read_tensorflow(normalise(text), "x.log"))


def not_xla(text: str) -> list[MemoryReport]:
    return list(read_not_xla(normalise(text), "x.log"))


def space(report: MemoryReport) -> Space:
    assert report.space is not None
    return report.space


def test_tensorflow_by_hand() -> None:
    one, two, host, old, bare = tensorflow((LOGS / "gpu_tensorflow.log").read_text())
    assert (one.kind, one.severity, one.backend) == ("runtime-alloc", "error", "gpu")
    assert space(one).requested == 4 * 2048 * 128 * 128 * 4
    assert one.allocations[0].op_name is None  # the node below belongs to the second
    assert space(two).requested == 8 * 512 * 512 * 2
    assert (two.allocations[0].op_name, two.allocations[0].provenance) == ("model/conv2d_17/Relu", "computed")
    assert str(two.allocations[0].shape) == "f16[8,512,512]"
    assert (host.kind, host.backend, space(host).name) == ("host", "cpu", "host")
    assert space(host).requested == 209715200 * 30 * 8
    assert host.allocations[0].op_name == "Bucketize"
    assert (space(old).requested, old.allocations[0].op_name) == (16_384, "save/Assign")
    assert (space(bare).requested, bare.allocations) == (None, ())
    assert "Requested by op AddV2." in bare.notes


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("bfloat16", 2), ("bool", 1), ("complex128", 16), ("int64", 8), ("uint8", 1), ("float8_e4m3fn", 1)],
)
def test_types(dtype: str, size: int) -> None:
    (report,) = tensorflow(f"OOM when allocating tensor with shape[10,3] and type {dtype} on /gpu:0\n")
    assert space(report).requested == 30 * size


@pytest.mark.parametrize(
    "text",
    [
        "OOM when allocating tensor with shape[10,3]\n",
        "OOM when allocating tensor with shape[10,3] and type string on /gpu:0\n",
        "OOM when allocating tensor with shape[10,3] and type float",  # perhaps float8_e5m2
        "OOM when allocating tensor with shape[10,,3] and type float \n",
    ],
)
def test_no_bytes_without_shape_and_type(text: str) -> None:
    (report,) = tensorflow(text)
    assert (space(report).requested, report.allocations) == (None, ())


@pytest.mark.parametrize(
    "text", ["OOM when allocating tensor with shape[10,3", "OOM when allocating tensor with shape.."]
)
def test_what_is_no_report(text: str) -> None:
    assert tensorflow(text) == []


def test_pytorch_by_hand() -> None:
    old, new, hip, cupy = not_xla((LOGS / "gpu_pytorch.log").read_text())
    assert {r.kind for r in (old, new, hip, cupy)} == {"not-xla"}
    assert (space(old).requested, space(old).capacity, space(old).free) == (2 * GIB, 6 * GIB, 13 * GIB // 4)
    assert (space(old).used, space(old).reserved) == (781 * MIB + MIB // 2, 5 * GIB // 4)
    assert (space(new).requested, space(new).capacity) == (3 * GIB, 47 * GIB // 2)
    assert (space(new).free, space(new).used, space(new).reserved) == (3 * GIB // 2, 5 * GIB // 2, None)
    assert "Process 4242 has 18.25 GiB memory in use." in new.notes
    assert "512.25 MiB is reserved by PyTorch but unallocated." in new.notes
    assert (space(hip).requested, space(hip).used) == (16 * GIB, 0)
    assert (space(cupy).requested, cupy.source.format) == (1 << 30, "cupy-oom")
    assert all("XLA has no part in it" in r.notes[0] for r in (old, new, hip, cupy))


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        ("CUDA out of memory. Tried to allocate 1024.00 KiB (GPU 0; 11.25 GiB total capacity)\n", 1 << 20),
        ("\x1b[36m(W pid=4)\x1b[0m CUDA out of memory. Tried to allocate 192.00 MiB. GPU 0 has\n", 192 * MIB),
        ("E   CUDA out of memory. Tried to allocate more than 1EB memory.\n", None),
        ("CUDA out of memory. Tried to allocate 2.2", None),
    ],
)
def test_pytorch_wordings(text: str, requested: int | None) -> None:
    (report,) = not_xla(text)
    assert space(report).requested == requested


def test_figures_stay_with_their_message() -> None:
    text = (LOGS / "gpu_pytorch.log").read_text().splitlines()
    first, second = not_xla("CUDA out of memory. Tried to allocate 1.00 GiB\n" + text[0] + "\n")
    assert space(first).capacity is None
    assert space(second).capacity == 6 * GIB
