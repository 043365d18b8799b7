"""What XLA was doing when an allocation failed, where the words around the failure say so."""

from __future__ import annotations

import re

from xlamem.circumstances import AUTOTUNING, GRAPHS

_BEFORE, _AFTER = 300, 500
_AUTOTUNING = re.compile(r"[Aa]utotun|algorithm[ _]picker|conv_algorithm|redzone", re.IGNORECASE)
_GRAPHS = re.compile(r"CUDA graph|cuda_graph|cuGraph|cudaGraph|command[ _]?buffer", re.IGNORECASE)


def circumstances(text: str, start: int, end: int) -> tuple[str, ...]:
    """The notes that the words near ``text[start:end]``, in the same paragraph, support."""
    begin = max(text.rfind("\n", 0, start) + 1, start - _BEFORE)
    around = text[begin : end + _AFTER].split("\n\n", 1)[0]
    return tuple(
        note for note, pattern in ((AUTOTUNING, _AUTOTUNING), (GRAPHS, _GRAPHS)) if pattern.search(around)
    )
