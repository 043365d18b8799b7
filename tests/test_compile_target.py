"""The names of what a program can be compiled for."""

from __future__ import annotations

import pytest

from xlamem.compiler import gpu
from xlamem.compiler.target import parse
from xlamem.errors import ProgramError, UnknownTargetError
from xlamem.targets import all_devices


@pytest.mark.parametrize(
    ("name", "shown", "devices", "topology"),
    [
        ("v5e", "v5e", 1, "v5e:2x2"),
        ("v5e:4x4", "v5e:4x4", 16, "v5e:4x4"),
        ("v5e:16", "v5e:4x4", 16, "v5e:4x4"),
        ("v5litepod-16", "v5e:4x4", 16, "v5e:4x4"),
        ("TPU v5 lite", "v5e", 1, "v5e:2x2"),
        ("v5e:1x1", "v5e:1x1", 1, "v5e:2x2"),
        ("v2:2x2", "v2:2x2", 8, "v2:2x2"),
        ("v4:2x2x2", "v4:2x2x2", 8, "v4:2x2x2"),
        ("v5p-8", "v5p:2x2x1", 4, "v5p:2x2x1"),
        ("v7x", "v7x", 1, "tpu7x:2x2x1"),
        ("h100", "h100", 1, "1x1x1"),
        ("H100:8", "h100:8", 8, "1x1x8"),
        ("h100:16", "h100:16", 16, "1x2x8"),
        ("cpu:4", "cpu:4", 4, "1x1x4"),
    ],
)
def test_a_target_by_any_of_its_names(name: str, shown: str, devices: int, topology: str) -> None:
    target = parse(name)
    assert (str(target), target.devices, target.topology()) == (shown, devices, topology)


def test_without_a_slice_the_smallest_that_is_large_enough_is_taken() -> None:
    assert parse("v5e").topology(4) == "v5e:2x2"
    assert parse("v5e").topology(5) == "v5e:2x4"
    assert parse("v2").topology(8) == "v2:2x2"  # a chip is two devices
    assert parse("v5p").topology(8) == "v5p:2x2x2"
    assert parse("h100").topology(4) == "1x1x4"


def test_more_devices_than_the_slice_has_are_refused() -> None:
    with pytest.raises(ProgramError, match="spread over 32 devices, and v5e:4x4 has 16"):
        parse("v5e:4x4").topology(32)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("v9", "no target 'v9'"),
        ("v5e:4x4x4", "'4x4x4' is no slice of v5e; write it like v5e:2x2"),
        ("v5e:7", "no slice of 7 chips is known"),
        ("h100:two", "number of devices, as in h100:8"),
        ("rtx4090", "cannot be compiled for rtx4090 yet; for these GPUs they can: v100-16g"),
    ],
)
def test_what_is_no_target_says_why(name: str, why: str) -> None:
    with pytest.raises(UnknownTargetError) as raised:
        parse(name)
    assert why in str(raised.value)


def test_every_gpu_that_can_be_compiled_for_has_a_whole_configuration() -> None:
    for device in all_devices():
        if device.gpu is None:
            continue
        target = parse(device.name)
        text = gpu.config(target, gpu.usable(target, None))
        assert "None" not in text
        assert f"device_memory_size: {round(device.memory * 0.75 / 0.8)}\n" in text
        assert all(line.split(": ")[1] for line in text.splitlines() if ": " in line)
