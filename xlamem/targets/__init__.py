"""The chips that programs run on: names, memory, and what differs between TPU generations.

The facts are in ``devices.toml``, with their sources; this reads them on first use.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from xlamem.errors import UnknownTargetError
from xlamem.units import parse_size, slack_of

__all__ = ["Device", "GpuFacts", "all_devices", "get", "infer"]

#: Words in front of a chip's name that say nothing: "NVIDIA H100", "TPU v4".
_MAKERS = re.compile(r"^(?:google|cloud|tpu|nvidia|tesla|geforce|amd|instinct)+")

#: A slice behind the name: "v5e:4x4", "h100:8"; and the way Cloud writes one: "v5litepod-16".
_SLICE = re.compile(r":[0-9x]*$")
_CLOUD_SLICE = re.compile(r"-\d+$")


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What XLA asks a driver about a GPU. A multiprocessor is what XLA calls a core."""

    multiprocessors: int
    fp32_units: int
    #: Bytes of shared memory: of a multiprocessor, and what a block can have of it on request.
    shared_memory: int
    shared_memory_optin: int
    #: Bytes.
    l2_cache: int
    clock_ghz: float
    #: Bytes a second.
    bandwidth: int


@dataclass(frozen=True, slots=True)
class Device:
    """One chip, or a core of it where programs are compiled for one core. All sizes in bytes.

    A size that was read off a report is a :class:`xlamem.units.Size`, an integer that knows how exact it is.
    """

    name: str
    kind: Literal["tpu", "gpu"]
    #: Other names, as people and drivers write them.
    aliases: tuple[str, ...]
    #: All the memory there is.
    memory: int
    #: What a program may take: on a TPU the compiler's limit, on a GPU what JAX's allocator takes by itself.
    allowed: int
    #: What it allows where a chip's cores run as one device, as v4 does for users.
    megacore: int | None = None
    #: Further figures that reports have printed as the capacity.
    capacities: tuple[int, ...] = ()
    #: On-chip memory, where known.
    vmem: int | None = None
    smem: int | None = None
    #: TPU: whose rule for default layouts holds, "v2" or "v4" (see :mod:`xlamem.layouts`).
    layout_family: str | None = None
    #: TPU: to how many bytes the table of pointers of a tuple is rounded up.
    tuple_alignment: int | None = None
    #: TPU: the name of the smallest slice that the compiler accepts.
    topology: str | None = None
    #: TPU: as how many devices a chip runs.
    devices_per_chip: int = 1
    #: NVIDIA: compute capability, such as "9.0".
    compute_capability: str | None = None
    #: NVIDIA: what XLA's compiler wants to know; None where programs cannot be compiled for it.
    gpu: GpuFacts | None = None


def all_devices() -> tuple[Device, ...]:
    """Every known chip: TPUs by generation, then GPUs."""
    return _load()


def get(name: str) -> Device:
    """The chip called ``name``, in any usual spelling; a slice behind it is ignored: "v5e:4x4", "h100:8".

    Raises:
        UnknownTargetError: no chip of that name; the message lists similar ones.
    """
    found = _find(name)
    if found is None:
        raise UnknownTargetError(_not_found(name))
    return found


def infer(capacity: int, slack: int) -> Device | None:
    """The TPU whose memory a report's ``capacity`` is, in bytes, give or take ``slack``; None if not clear.

    A figure with slack 0 is exact and may also be the whole memory, which generations share: 16 GiB tells
    nothing, where a printed "16.00G" tells a v3.
    """
    found = []
    for device in _load():
        if device.kind != "tpu":
            continue
        known = [device.allowed, *device.capacities]
        # What we know is itself read off a printed figure.
        near = any(abs(capacity - size) <= slack + slack_of(size) for size in known)
        if near if slack else near or capacity == device.memory:
            found.append(device)
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=256)
def _find(name: str) -> Device | None:
    by_name = _names()
    name = _SLICE.sub("", name.strip())
    found = by_name.get(_plain(name))
    if found is None:
        found = by_name.get(_plain(_CLOUD_SLICE.sub("", name)))
        if found is not None and found.kind != "tpu":  # "t4-4" is no slice, but maybe a typing error
            found = None
    return found


def _plain(name: str) -> str:
    """``name`` without what makes no difference."""
    return _MAKERS.sub("", re.sub(r"[\s_-]+", "", name.lower()))


def _not_found(name: str) -> str:
    from difflib import get_close_matches  # only ever needed for this message

    names = _names()
    close = dict.fromkeys(names[match].name for match in get_close_matches(_plain(name[:64]), names, n=5))
    shown = name if len(name) <= 64 else name[:64] + "..."
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"no target {shown!r}; {hint}`xlamem targets` lists all of them"


@lru_cache(maxsize=1)
def _names() -> dict[str, Device]:
    return {_plain(name): device for device in _load() for name in (device.name, *device.aliases)}


@lru_cache(maxsize=1)
def _load() -> tuple[Device, ...]:
    import tomllib  # costs a few milliseconds, and reading a shape needs none of this

    with open(os.path.join(os.path.dirname(__file__), "devices.toml"), "rb") as file:
        return tuple(_device(name, facts) for name, facts in tomllib.load(file).items())


def _device(name: str, facts: dict[str, Any]) -> Device:
    for key in ("memory", "vmem", "smem"):
        if key in facts:
            facts[key] = int(_size(facts[key]))  # whole units: nothing was rounded
    facts["allowed"] = _size(facts["allowed"]) if "allowed" in facts else facts["memory"] * 3 // 4
    if "megacore" in facts:
        facts["megacore"] = _size(facts["megacore"])
    facts["capacities"] = tuple(_size(text) for text in facts.get("capacities", ()))
    facts["aliases"] = tuple(facts["aliases"])
    if "gpu" in facts:
        facts["gpu"] = GpuFacts(**facts["gpu"])
    return Device(name=name, **facts)


def _size(value: int | str) -> int:
    return value if isinstance(value, int) else parse_size(value)
