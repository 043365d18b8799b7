"""How fast HLO is read: text against jaxlib's own C++ parser, a proto against XProf's Memory Viewer.

    python benchmarks/bench_hlo.py [MODULE.txt] [--megabytes 20] [--proto MODULE.hlo.pb]

Both on the same file, in one run; jaxlib and xprof (pip install xprof) are left out where they are not installed.

The module is a dump's text with its computations repeated under other names until it is large enough. Both
are timed in turns, and the best of each counts: the machine's other work slows down both. Ours is done
when every row is complete: name, opcode, shape with layout, bytes, op_name, source file and line.

The proto is read and explained: the table of allocations, the timelines, the peak with what is alive there, whose it
is, padding and layout copies; values that are not alive there are only named when somebody looks at them. XProf's is
what its page asks for: the peak, and what is alive there. The first call of a process pays for what each loads
late; CPU time counts, as XProf uses several threads.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from xlamem.explanation import explain
from xlamem.readers import hlo_text
from xlamem.readers.dump import read_bytes

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
    parser.add_argument("--proto", type=Path, default=next(DEFAULT.glob("*.hlo.pb")))
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
    _protos(options.proto)


def _protos(path: Path) -> None:
    """Print the first and the best later time for a proto."""
    data = path.read_bytes()
    out = sys.stdout.write
    out(f"\n{path.name}, {len(data) / 1e6:.2f} MB\n")
    ours = _times(lambda: _explained(path.name, data))
    out(f"xlamem   first {ours[0]:.3f} s, then {ours[1]:.3f} s\n")
    with TemporaryDirectory() as folder:
        view = _xprof(path, Path(folder))
        if view is not None:
            theirs = _times(view)
            out(f"xprof    first {theirs[0]:.3f} s, then {theirs[1]:.3f} s")
            out(f"   ({theirs[0] / ours[0]:.2f} and {theirs[1] / ours[1]:.2f} times as long)\n")


def _explained(name: str, data: bytes) -> object:
    report = read_bytes(name, data)
    return None if report is None else explain(report)


def _times(call: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of the first call, and of the fastest of those after it."""
    seconds = []
    for _ in range(2 * ROUNDS):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return seconds[0], min(seconds[1:])


def _xprof(proto: Path, folder: Path) -> Callable[[], object] | None:
    """XProf's Memory Viewer on ``proto``; None where it is not installed."""
    try:
        convert = import_module("xprof.convert.raw_to_tool_data")
    except ImportError:
        return None
    profile = folder / "plugins" / "profile" / "s1"
    profile.mkdir(parents=True)
    plane = profile / "host.xplane.pb"
    plane.touch()
    shutil.copy(proto, profile / "m.hlo_proto.pb")
    options = {"module_name": "m", "memory_space": "0"}
    return lambda: convert.xspace_to_tool_data([str(plane)], "memory_viewer", options)


def _jaxlib_parser() -> Callable[[str], object] | None:
    try:
        hlo = import_module("jaxlib._hlo")
    except ImportError:
        return None
    parse: Callable[[str], object] = hlo.hlo_module_from_text
    return parse


if __name__ == "__main__":
    main()
