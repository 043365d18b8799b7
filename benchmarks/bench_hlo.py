"""How fast HLO text is read, against jaxlib's own C++ parser on the same text, in one run.

    python benchmarks/bench_hlo.py [MODULE.txt] [--megabytes 20]

The module is a dump's text with its computations repeated under other names until it is large enough. Both
are timed in turns, and the best of each counts: the machine's other work slows down both. Ours is done
when every row is complete: name, opcode, shape with layout, bytes, op_name, source file and line.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from xlamem.readers import hlo_text

DEFAULT = Path(__file__).parent.parent / "fixtures" / "dumps" / "tpu_oom"
ROUNDS = 5


def enlarged(text: str, size: int) -> str:
    """``text`` with its computations repeated until it has ``size`` characters."""
    head, _, body = text.partition("\n\n\n")
    start = body.index("ENTRY ")
    others, entry = body[:start], body[start:]
    called = others + entry.removeprefix("ENTRY ").rstrip() + "\n\n"
    copies = max(1, size // len(called))
    parts = [head, "\n\n\n"]
    for n in range(copies):
        parts.append(re.sub(r"%([\w.\-]+)", rf"%\1.c{n}", called))
    return "".join([*parts, others, entry])


def rows(text: str) -> int:
    """Read ``text`` and look at every cell; the number of rows."""
    module = hlo_text.parse(text)
    count = cells = 0
    for computation in module.computations.values():
        for i in computation.instructions:
            count += 1
            cells += (
                i.shape is not None
                and i.bytes is not None
                and i.op_name is not None
                and i.source_line is not None
            )
    assert cells
    return count


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", nargs="?", type=Path, default=None)
    parser.add_argument("--megabytes", type=int, default=20)
    options = parser.parse_args()
    module = options.module or next(DEFAULT.glob("*.after_optimizations.txt"))
    text = enlarged(module.read_text(encoding="utf-8"), options.megabytes * 10**6)
    count = rows(text)
    ours, theirs = [], []
    parse = _jaxlib_parser()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        rows(text)
        ours.append(time.perf_counter() - start)
        if parse is not None:
            start = time.perf_counter()
            parse(text)
            theirs.append(time.perf_counter() - start)
    out = sys.stdout.write
    out(f"{len(text) / 1e6:.1f} MB, {count} instructions, best of {ROUNDS}\n")
    out(f"xlamem   {min(ours):.3f} s\n")
    if theirs:
        out(f"jaxlib   {min(theirs):.3f} s   ({min(theirs) / min(ours):.2f} times as long)\n")


def _jaxlib_parser() -> Callable[[str], object] | None:
    try:
        hlo = import_module("jaxlib._hlo")
    except ImportError:
        return None
    parse: Callable[[str], object] = hlo.hlo_module_from_text
    return parse


if __name__ == "__main__":
    main()
