"""When a dump that is still being written holds the answer about memory."""

from __future__ import annotations

import os

from xlamem.compiler import cpu, gpu, tpu
from xlamem.compiler.target import Platform

__all__ = ["is_there"]

_MARKS: dict[Platform, tuple[str, ...]] = {
    "tpu": (tpu.FITS, tpu.DOES_NOT_FIT),
    "cuda": (gpu.ASSIGNED,),
    "cpu": (cpu.ASSIGNED,),
}


def is_there(folder: str, platform: Platform) -> bool:
    """Whether everything that the readers need is in ``folder``, and whole.

    XLA writes one file after the other, so each is whole once the next has appeared; the marks come after all
    that is read.
    """
    marks = _MARKS[platform]
    try:
        return any(name.endswith(marks) for name in os.listdir(folder))
    except FileNotFoundError:
        return False
