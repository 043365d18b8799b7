"""What to do about a TPU that ran out of memory: rules of thumb that the report supports.

Nothing here is measured, and nothing is said that the report gives no reason for. Which memory it was
decides: HBM of a program, HBM of a running chip, or a memory on the chip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xlamem.advice.tpu_hbm_rules import hbm, remat_warning
from xlamem.advice.tpu_onchip_rules import onchip
from xlamem.advice.tpu_rule import CONSTRAIN, rule
from xlamem.advice.tpu_runtime_rules import fragmentation, program_load, runtime_alloc
from xlamem.finding import Advice
from xlamem.report import Kind, MemoryReport

_Rules = Callable[[MemoryReport], Iterator[Advice]]


def actions(report: MemoryReport) -> tuple[Advice, ...]:
    """What the report supports, the most specific first; empty for what is no failure, and for GPUs."""
    if report.backend in ("gpu", "cpu") or report.fits:
        return ()
    rules = _BY_FORM.get(report.source.format) or _BY_KIND.get(report.kind)
    if rules is None:
        return ()
    found: dict[str, Advice] = {}
    for advice in rules(report):
        found.setdefault(advice.name, advice)
    return tuple(found.values())


def _host(report: MemoryReport) -> Iterator[Advice]:
    yield rule(
        "offload-less",
        "It is host memory that ran out: what the program keeps there was offloaded, so offload fewer "
        "values, or recompute some of them instead.",
        "jax.checkpoint(f, "
        "policy=jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=[], "
        "names_which_can_be_offloaded=[...fewer...], "
        'offload_src="device", offload_dst="pinned_host"))',
        safe=True,
    )


def _mismatch(report: MemoryReport) -> Iterator[Advice]:
    yield rule(
        "recompile",
        "The program was compiled for another layout than the array has: compile it again with the XLA "
        "version, the flags and the slice that it now runs with, and export a saved model anew.",
        safe=True,
    )
    yield rule(
        "relayout",
        "Or give the array the layout that the compiled program asks for.",
        "x = jax.device_put(x, compiled.input_formats[0][i])  # the format of that argument",
        safe=True,
    )


def _too_many_words(report: MemoryReport) -> Iterator[Advice]:
    yield rule(
        "split",
        "No single array may be that large, however much memory there is: shard it, or make it smaller "
        "with microbatches. It is often what a scan stacks up, layers x batch x ...",
        CONSTRAIN,
        safe=True,
    )


_BY_FORM: dict[str, _Rules] = {"layout-mismatch": _mismatch, "tpu-too-many-words": _too_many_words}
_BY_KIND: dict[Kind, _Rules] = {
    "hbm": hbm,
    "onchip": onchip,
    "runtime-alloc": runtime_alloc,
    "fragmentation": fragmentation,
    "program-load": program_load,
    "host": _host,
    "remat-warning": remat_warning,
}
