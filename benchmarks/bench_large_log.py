"""A log of a gigabyte with one report near its end, against ``grep -c`` for the report's own words.

At most 8 times grep's time and 200 MB of memory.

Run: python benchmarks/bench_large_log.py [MEGABYTES]
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parent.parent
LOG = ROOT / "fixtures" / "logs" / "unet_kernel_v2.log"
WORDS = [
    "step",
    "loss",
    "grad",
    "batch",
    "epoch",
    "learning",
    "rate",
    "tokens",
    "sec",
    "host",
    "saved",
    "restored",
]


def write_log(path: Path, megabytes: int) -> None:
    """A training log: the same ten megabytes of lines again and again, the report, and a little more."""
    random.seed(0)
    lines: list[str] = []
    size = 0
    while size < 10 << 20:
        words = " ".join(random.choices(WORDS, k=12))
        line = f"I1130 16:17:00.{random.randrange(10**6):06d}   11420 train.py:{len(lines) % 900}] {words} 0.1234\n"
        lines.append(line)
        size += len(line)
    block = "".join(lines).encode()
    with path.open("wb") as file:
        for _ in range(max(1, megabytes // 10)):
            file.write(block)
        file.write(LOG.read_bytes())
        file.write(block[: 1 << 20])


def run(command: list[str]) -> tuple[float, float, int]:
    """Wall seconds, peak memory in MB and exit code."""
    start = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return perf_counter() - start, usage.ru_maxrss / 1024, process.returncode


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        write_log(path, megabytes)
        grep = min(run(["grep", "-c", "Ran out of memory", str(path)])[0] for _ in range(5))
        code = "from xlamem.commands import main; main()"
        runs = [run([sys.executable, "-c", code, "explain", str(path)]) for _ in range(3)]
    seconds, memory, status = min(runs)
    sys.stdout.write(
        f"{megabytes} MB: {seconds:.2f} s, {seconds / grep:.1f} times grep -c ({grep:.2f} s); "
        f"{memory:.0f} MB of memory; exit code {status} (3: the report was found)\n"
    )


if __name__ == "__main__":
    main()
