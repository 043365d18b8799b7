"""What the rules for TPUs share."""

from __future__ import annotations

from xlamem.finding import Advice
from xlamem.report import MemoryReport

#: Sharding a value inside a program.
CONSTRAIN = (
    "x = jax.lax.with_sharding_constraint("
    'x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data")))'
)


def rule(name: str, text: str, how: str | None = None, *, safe: bool | None = None) -> Advice:
    """One rule of thumb."""
    return Advice(name=name, text=text, how=how, safe=safe, provenance="estimated")


def compile_here(report: MemoryReport) -> Advice:
    """The same compiler, run without a TPU, with everything listed."""
    target = report.target.name if report.target else "v5e"
    chip = "" if report.target else " Name the chip that you use."
    return rule(
        "compile",
        "Compile the program again with every allocation listed; that needs no TPU." + chip,
        f"xlamem compile train.py:step --inputs train.py:inputs --target {target}",
        safe=True,
    )
