"""How long ``xlamem explain`` takes on a log, against importing rich.table and click alone.

A command line that people wait for must start at once: at most 1.8 times. Bytecode is compiled before, as it is
after the first run of any installed program.

Run: python benchmarks/bench_start.py [RUNS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parent.parent
LOG = ROOT / "fixtures" / "logs" / "unet_kernel_v2.log"


def seconds(command: list[str], environment: dict[str, str], runs: int) -> float:
    """The least wall time of ``runs``, after one that compiles the bytecode."""
    times = []
    for _ in range(runs + 1):
        start = perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        times.append(perf_counter() - start)
    return min(times[1:])


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = cache
        base = seconds([sys.executable, "-c", "import rich.table, click"], environment, runs)
        code = "from xlamem.commands import main; main()"
        ours = seconds([sys.executable, "-c", code, "explain", str(LOG)], environment, runs)
    sys.stdout.write(
        f"xlamem explain: {1000 * ours:.0f} ms, {ours / base:.2f} times importing rich.table and click "
        f"({1000 * base:.0f} ms)\n"
    )


if __name__ == "__main__":
    main()
