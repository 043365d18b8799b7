"""Reading without the search for reference cycles.

A large module becomes hundreds of thousands of tuples that hold no cycles. Python looks through all of them
again and again for some, which takes a third of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No search for cycles inside; on again after it, if it was on before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                # What was made counts as old: otherwise all of it is searched at once, right now.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
