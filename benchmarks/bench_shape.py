"""How many distinct shapes a second are read and sized, against json.loads of the same shapes as rows.

Run: python benchmarks/bench_shape.py [COUNT]
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from time import perf_counter

from xlamem.shape import Shape

TYPES = (("f32", "T(8,128)"), ("bf16", "T(8,128)(2,1)"), ("s8", "T(32,128)(4,1)"), ("pred", "T(8,128)(4,1)"))


def shapes(count: int) -> list[str]:
    """``count`` distinct arrays with tiled layouts, the same ones in every run."""
    random.seed(0)
    found: dict[str, None] = {}
    while len(found) < count:
        dtype, tiles = random.choice(TYPES)
        rank = random.randint(2, 5)
        dims = ",".join(str(random.randint(1, 4096)) for _ in range(rank))
        order = ",".join(map(str, random.sample(range(rank), rank)))
        found[f"{dtype}[{dims}]{{{order}:{tiles}}}"] = None
    return list(found)


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    texts = shapes(count)
    rows = [json.dumps({"shape": text, "bytes": Shape.parse_prefix(text)[0].padded_bytes}) for text in texts]
    baseline = seconds(lambda: [json.loads(row) for row in rows])
    ours = seconds(lambda: [Shape.parse(text).padded_bytes for text in texts])
    again = seconds(lambda: [Shape.parse(texts[0]).padded_bytes for _ in texts])
    sys.stdout.write(
        f"{count} distinct shapes read and sized in {ours:.2f} s: {count / ours:,.0f} a second,"
        f" {ours / baseline:.1f} times json.loads of the same rows ({baseline:.2f} s);"
        f" a shape seen before {again / count * 1e6:.1f} us\n"
    )


if __name__ == "__main__":
    main()
