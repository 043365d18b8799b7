"""For which chip a dump was compiled, as far as its files tell."""

from __future__ import annotations

import re
from pathlib import Path

from xlamem.errors import UnknownTargetError
from xlamem.report import Target
from xlamem.targets import Device, get

#: libtpu's names of the generations in ``target_arguments.txt``: (version, variant). Read off dumps of
#: libtpu 0.0.42.1 compiled for each generation; those with digits are how it writes a name it does not tell.
_VERSIONS = {
    ("JELLYFISH", ""): "v2",
    ("DRAGONFISH", ""): "v3",
    ("PUFFERFISH", ""): "v4",
    ("VIPERFISH", "lite"): "v5e",
    ("2093c6a02", "lite"): "v5e",  # libtpu 0.0.7
    ("VIPERFISH", ""): "v5p",
    ("GHOSTLITE", ""): "v6e",
    ("6acc60406", ""): "v7x",
}
_VERSION = re.compile(r"version: TPU_VERSION_(\w+)")
_VARIANT = re.compile(r'variant: "(\w*)"')
_TOPOLOGY = re.compile(rb"TFRT (TPU ?[\w ]+)")
_GPU = re.compile(r'device_description_str: "([^"]*)"')


def device_of(files: dict[str, Path]) -> Device | None:
    """The chip that the files of one compile name; None if they do not, or name one that is not known."""
    for name in _names(files):
        try:
            return get(name)
        except UnknownTargetError:
            continue
    return None


def target_of(device: Device | None) -> Target | None:
    """The target of a report about ``device``. Told by the compiler's files, not by the user: inferred."""
    return None if device is None else Target(device.name, inferred=True)


def _names(files: dict[str, Path]) -> list[str]:
    found = []
    if (text := _read(files.get("target"))) and (version := _VERSION.search(text.decode("utf-8", "replace"))):
        variant = _VARIANT.search(text.decode("utf-8", "replace"))
        name = _VERSIONS.get((version[1], variant[1] if variant is not None else ""))
        if name is not None:
            found.append(name)
    if (data := _read(files.get("topology"))) and (topology := _TOPOLOGY.search(data)):
        found.append(topology[1].decode().strip())
    if (text := _read(files.get("gpu target"))) and (gpu := _GPU.search(text.decode("utf-8", "replace"))):
        found.append(gpu[1])
    return found


def _read(path: Path | None) -> bytes:
    try:
        return b"" if path is None else path.read_bytes()
    except OSError:
        return b""
