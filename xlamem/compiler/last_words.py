"""What a process wrote before it ended, without what XLA says every time."""

from __future__ import annotations

import os
import re
from pathlib import Path

_TAIL_BYTES = 16_384
_LINES = 12
_NOISE = re.compile(
    r"^WARNING: All log messages before absl::InitializeLog|cudart_stub\.cc|^\s*$|"
    r"cuda_executor|Could not find cuda drivers|computation_placer\.cc|cuda_(dnn|blas|fft)\.cc|"
    r"^E\d{4}.*Unable to register cu|transport_grpc_libtpu"
)


def last_words(log: Path) -> str:
    """The last lines of ``log`` that may say why; empty if there are none."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.rstrip() for line in text.splitlines() if not _NOISE.search(line)]
    return "\n".join(f"  {line[:400]}" for line in lines[-_LINES:])
