"""A program ready to be compiled: StableHLO for one platform, whatever it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

__all__ = ["Program"]


@dataclass(frozen=True, slots=True)
class Program:
    """StableHLO with what the compile needs to know beside it. Plain data: it can be sent to another machine.

    ``code`` is MLIR bytecode or text, with locations; ``devices`` over how many devices it is spread.
    """

    #: The module's own name, "jit_step".
    name: str
    code: bytes
    #: "tpu", "cuda" or "cpu"; None where it was not lowered for one (a dump, a StableHLO file).
    platform: str | None
    devices: int = 1
    #: Whether the shardings in it are Shardy's, or those of the partitioner before it.
    shardy: bool = True
    #: What a reader of the report should know about how the program came to be.
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of all that the compiler sees."""
        text = f"{self.platform} {self.devices} {self.shardy} ".encode()
        return hashlib.sha256(text + self.code).hexdigest()
