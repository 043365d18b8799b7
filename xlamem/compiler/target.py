"""What a program is compiled for: the name that people type, and what the compilers want to know instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Literal

from xlamem import targets
from xlamem.errors import ProgramError, UnknownTargetError
from xlamem.targets import Device

__all__ = ["ATTACHED", "CompileTarget", "Platform", "parse"]

Platform = Literal["tpu", "cuda", "cpu"]

#: The name of the target that is whatever devices this machine has.
ATTACHED = "attached"

#: Slices that TPUs come in: with two axes of links, and with three.
_FLAT = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_DEEP = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8")

#: A machine has as many GPUs at most.
_GPUS_A_HOST = 8


@dataclass(frozen=True, slots=True)
class CompileTarget:
    """One target. ``devices`` is how many the user's code sees, ``slice`` what was named behind the chip.

    Without a slice a program may be spread over as many devices as it asks for.
    """

    #: As listed by ``xlamem targets``; "cpu" or "attached" otherwise.
    name: str
    #: None for what is attached: only its own process knows.
    platform: Platform | None
    device: Device | None = None
    slice: str | None = None
    devices: int = 1

    def __str__(self) -> str:
        return self.name if self.slice is None else f"{self.name}:{self.slice}"

    def with_devices(self, count: int) -> str:
        """How a target of this chip with so many devices is typed: "v5e:2x2", "h100:4"; the smallest that has them."""
        if self.device is None or self.device.topology is None:
            return f"{self.name}:{count}"
        smallest = self.device.topology.split(":")[1]
        found = (s for s in _slices(smallest) if _count(s) * self.device.devices_per_chip >= count)
        return self.name + ":" + next(found, "SLICE")

    def topology(self, devices: int = 1) -> str:
        """The compiler's name of a slice with so many devices: "v5e:4x4", or "1x1x8" for GPUs.

        Raises:
            ProgramError: the program needs more devices than the target has.
        """
        if self.slice is not None and devices > self.devices:
            raise ProgramError(
                f"the program is spread over {devices} devices, and {self} has {self.devices}: name a larger slice"
            )
        if self.device is None or self.device.topology is None:
            count = devices if self.slice is None else self.devices
            hosts = -(-count // _GPUS_A_HOST)
            return f"1x{hosts}x{min(count, _GPUS_A_HOST)}"
        family, smallest = self.device.topology.split(":")
        if self.slice is not None and self.devices >= _count(smallest) * self.device.devices_per_chip:
            return f"{family}:{self.slice}"
        # Less than the smallest slice is compiled as a part of it.
        for name in _slices(smallest):
            if _count(name) * self.device.devices_per_chip >= devices:
                return f"{family}:{name}"
        raise ProgramError(
            f"the program is spread over {devices} devices: name the slice, such as {self.name}:16x32"
        )


def parse(name: str) -> CompileTarget:
    """The target called ``name``: "v5e", "v5e:4x4", "v5e:16" (chips), "v5litepod-16", "h100:8", "cpu:4", "attached".

    Raises:
        UnknownTargetError: no such chip, no such slice, or a chip that no compiler is known for.
    """
    chip, _, wanted = name.strip().lower().partition(":")
    if chip == ATTACHED and not wanted:
        return CompileTarget(ATTACHED, None)
    if chip == "cpu":
        return CompileTarget("cpu", "cpu", None, wanted or None, _gpus(name, wanted))
    device = targets.get(chip)
    if device.kind == "gpu":
        if device.gpu is None:
            known = ", ".join(d.name for d in targets.all_devices() if d.gpu is not None)
            raise UnknownTargetError(
                f"programs cannot be compiled for {device.name} yet; for these GPUs they can: {known}"
            )
        return CompileTarget(device.name, "cuda", device, wanted or None, _gpus(name, wanted))
    assert device.topology is not None
    smallest = device.topology.split(":")[1]
    if not wanted and (cloud := re.search(r"(?<=[a-z])-(\d+)$", chip)) is not None:
        # Cloud counts cores for the generations that have two, and chips for the others.
        two_cores = device.name not in ("v5e", "v6e")
        wanted = str(max(1, int(cloud[1]) // 2 if two_cores else int(cloud[1])))
    if wanted in ("", "1", "1x1", "1x1x1"):
        one = device.devices_per_chip if wanted else 1
        return CompileTarget(device.name, "tpu", device, wanted or None, one)
    axes = smallest.count("x")
    if wanted.isdecimal():
        fitting = [s for s in _slices(smallest) if _count(s) == int(wanted)]
        if not fitting:
            raise UnknownTargetError(
                f"no slice of {wanted} chips is known for {device.name}; write it out: {device.name}:{smallest}"
            )
        wanted = fitting[0]
    if not re.fullmatch(rf"[1-9]\d*(x[1-9]\d*){{{axes}}}", wanted):
        raise UnknownTargetError(
            f"{wanted!r} is no slice of {device.name}; write it like {device.name}:{smallest}"
        )
    return CompileTarget(device.name, "tpu", device, wanted, _count(wanted) * device.devices_per_chip)


def _slices(smallest: str) -> tuple[str, ...]:
    return _DEEP if smallest.count("x") == 2 else _FLAT


def _count(slice: str) -> int:
    return prod(int(axis) for axis in slice.split("x"))


def _gpus(name: str, wanted: str) -> int:
    if not wanted:
        return 1
    if not wanted.isdecimal() or int(wanted) == 0:
        raise UnknownTargetError(
            f"{name!r}: behind the colon comes the number of devices, as in {name.partition(':')[0]}:8"
        )
    return int(wanted)
