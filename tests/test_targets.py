"""The known chips: names, memory, and guessing one from the capacity of a report."""

from __future__ import annotations

import pytest

from xlamem.errors import UnknownTargetError
from xlamem.targets import Device, all_devices, get, infer
from xlamem.units import parse_size, slack_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v5e", "v5e"),
        ("V5E", "v5e"),
        ("TPU v5 lite", "v5e"),
        ("v5litepod-16", "v5e"),
        ("v5lite", "v5e"),
        ("v5e:4x4", "v5e"),
        ("TPU v5", "v5p"),
        ("v5p-8", "v5p"),
        ("v6 lite", "v6e"),
        ("Trillium", "v6e"),
        ("tpu7x:2x2x1", "v7x"),
        ("TPU7x", "v7x"),
        ("ironwood", "v7x"),
        ("h100-80g", "h100"),
        ("H100 80GB", "h100"),
        ("h100:8", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100-80g"),
        ("a100_40", "a100-40g"),
        ("A100", "a100-40g"),
        ("V100-32", "v100-32g"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("Tesla T4", "t4"),
    ],
)
def test_names_in_every_usual_spelling(name: str, expected: str) -> None:
    assert get(name).name == expected


@pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.name)
def test_a_device_answers_to_its_names_and_makes_sense(device: Device) -> None:
    assert all(get(name) is device for name in (device.name, *device.aliases))
    assert 0 < device.allowed < device.memory
    assert (
        (device.kind == "tpu")
        == (device.layout_family in ("v2", "v4"))
        == (device.tuple_alignment is not None)
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("h10", r"no target 'h10'; did you mean h100 .*`xlamem targets` lists all of them"),
        ("v99", r"no target 'v99'; .*`xlamem targets` lists all of them"),
        ("", r"no target ''; `xlamem targets` lists"),
        ("tpu", r"no target 'tpu'"),
        ("h100-8", r"no target 'h100-8'; did you mean h100"),
        ("z" * 100_000, r"no target 'z{64}\.\.\.'"),
    ],
)
def test_an_unknown_name_lists_similar_ones(name: str, message: str) -> None:
    with pytest.raises(UnknownTargetError, match=message):
        get(name)


def test_memory() -> None:
    assert get("v5e").memory == 16 * 2**30
    assert get("v5e").allowed == 15.75 * 2**30
    assert get("v5e").vmem == 128 * 2**20
    assert get("h100").memory == 84942979072
    assert get("h100").allowed == 84942979072 * 3 // 4
    assert get("h100").compute_capability == "9.0"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("7.48G", "v2"),
        ("8.00G", "v2"),
        ("15.48G", "v3"),
        ("16.00G", "v3"),
        ("15.25G", "v4"),
        ("30.75G", "v4"),
        ("15.75G", "v5e"),
        ("95.74G", "v5p"),
        ("31.25G", "v6e"),
        ("94.75G", "v7x"),
        ("5.03G", None),
        ("15.80G", None),
        ("16G", None),  # so few digits could be several chips
    ],
)
def test_the_capacity_tells_the_chip(printed: str, expected: str | None) -> None:
    size = parse_size(printed)
    found = infer(size, 2 * slack_of(size))
    assert (found.name if found else None) == expected


def test_an_exact_capacity_that_chips_share_tells_nothing() -> None:
    assert infer(16 * 2**30, 0) is None
    found = infer(8 * 2**30, 0)
    assert found is not None
    assert found.name == "v2"
