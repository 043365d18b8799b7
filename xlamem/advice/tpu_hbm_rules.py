"""Rules for a program that does not fit the HBM."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlamem.advice.tpu_rule import CONSTRAIN, compile_here, rule
from xlamem.analysis.verdict import findings
from xlamem.finding import Advice
from xlamem.report import Allocation, MemoryReport, Space
from xlamem.units import format_size

#: The share of what is used from which a group of buffers is worth a word.
_SHARE = 0.25
#: One buffer over half of the memory is more often a mistake in the sharding than a need.
_GIANT = 0.5
_GRADIENT = re.compile(r"\bjvp\(|\btranspose\(")


def hbm(report: MemoryReport) -> Iterator[Advice]:
    """The way to the list where there is none; what the list points to where there is one."""
    space = report.space
    if space is None:
        return
    form = report.source.format
    if form == "tpu-one-buffer":
        yield from _one_buffer(report, space)
    elif form == "tpu-cores-line":
        yield from _cores(report)
    elif form == "sparsecore-alloca":
        yield from sparsecore_tables()
    elif report.allocations:
        yield from _triage(report, space)
        return
    else:
        yield from _no_list(report)
    yield compile_here(report)


def remat_warning(report: MemoryReport) -> Iterator[Advice]:
    """The compiler could not get below its goal; whether that matters, another message says."""
    space = report.space
    if space is None or space.used is None or space.goal is None or space.used <= space.goal:
        return
    if not space.goal:
        yield rule(
            "arguments",
            "Nothing was left for temporaries: the arguments alone fill what there is, and "
            "rematerialization cannot help. Shard them, or make them smaller.",
        )
        return
    yield rule(
        "checkpoint",
        "If the program did not fit: recompute more in the backward pass yourself, the compiler found "
        "nothing more to recompute. If it did, there is nothing to do.",
        "loss = jax.checkpoint(loss)  # or around each layer",
        safe=True,
    )


def _no_list(report: MemoryReport) -> Iterator[Advice]:
    module = f" of {report.program}" if report.program else ""
    if report.source.format == "tpu-early-abort":
        yield rule(
            "full-report",
            "The compiler gave up before it laid anything out. With this flag it goes on and lists the "
            "largest allocations. It is a flag of libtpu's, to be set before it starts; newer ones refuse "
            "it as a compiler option.",
            "LIBTPU_INIT_ARGS=--xla_tpu_impure_oom_fast_exit_threshold=-1 python train.py",
            safe=True,
        )
        return
    yield rule(
        "dump",
        f"The message has no list of what takes the memory; the compiler's dump has it: the files{module} "
        "that end in after_optimizations-memory-usage-report.txt and -buffer-assignment.txt are written "
        "even though the program does not fit.",
        "XLA_FLAGS=--xla_dump_to=DIR python train.py; xlamem explain DIR\n"
        '# or, for one program: jax.jit(f).lower(x).compile(compiler_options={"xla_dump_to": "DIR"})',
        safe=True,
    )


def _one_buffer(report: MemoryReport, space: Space) -> Iterator[Advice]:
    asked, capacity = space.requested, space.capacity
    if not report.allocations or asked is None or capacity is None:
        return
    buffer = report.allocations[0]
    what = f" ({buffer.shape})" if buffer.shape is not None else ""
    by = (
        f", the output of {buffer.name},"
        if buffer.name and (buffer.tag or "").startswith("output of")
        else ""
    )
    if buffer.unpadded_bytes is not None and int(buffer.unpadded_bytes) <= capacity and buffer.padding_bytes:
        yield rule(
            "layout",
            f"This one buffer{what}{by} is larger than the whole memory because of its layout: without "
            f"padding it takes {format_size(buffer.unpadded_bytes)}. Put larger axes last, or merge the "
            "small ones.",
        )
        return
    yield rule(
        "shard",
        f"This one buffer{what}{by} takes {format_size(asked)} of a memory of {format_size(capacity)}: what "
        "else the program keeps does not matter. Shard it over more chips, or check why it is not sharded.",
        CONSTRAIN,
        safe=True,
    )


def _cores(report: MemoryReport) -> Iterator[Advice]:
    parts = {a.label: int(a.bytes) for a in report.allocations}
    dense, sparse = parts.get("TensorCore", 0), parts.get("SparseCore", 0)
    if sparse >= dense:
        yield from sparsecore_tables()
        yield rule(
            "serialize-tables",
            "Working on the embedding tables one after the other takes less HBM for the SparseCore, and "
            "longer.",
            "LIBTPU_INIT_ARGS=--xla_sc_num_serialized_tables_to_optimize_hbm=N",
            safe=True,
        )


def sparsecore_tables() -> Iterator[Advice]:
    """Embedding tables are what a SparseCore keeps in HBM."""
    yield rule(
        "tables",
        "The SparseCore's share is embedding tables and their buffers: shard the tables over all chips, "
        "lower max_ids_per_partition and max_unique_ids_per_partition, and avoid rows of less than 8 "
        "floats, which are padded to 32 bytes.",
    )


def _triage(report: MemoryReport, space: Space) -> Iterator[Advice]:
    """What the figures and the list point to, as XLA's own guide to this error orders it."""
    base = int(space.used or space.total or space.program or 0)
    names = {finding.name for finding in findings(report)}
    listed = report.in_space(space.name)
    if not base:
        return
    largest = max((a for a in listed if a.shape is not None), key=lambda a: int(a.bytes), default=None)
    if largest is not None and space.capacity and _elements(largest) > _GIANT * int(space.capacity):
        yield rule(
            "sharding",
            f"One buffer, {largest.shape}, takes over half of the memory: that is rarely meant. Check that "
            "it is sharded, and that no jax.debug.print keeps it whole.",
            CONSTRAIN,
            safe=True,
        )
    own = int(space.outputs or 0) - int(space.aliased or 0)
    if own > 0 and int(space.arguments or 0) > 0 and own >= _SHARE * int(space.arguments or 0):
        most = min(own, int(space.arguments or 0))
        yield rule(
            "donate",
            f"{format_size(own)} of outputs share no memory with arguments: donate the arguments that they "
            f"replace, {format_size(most)} at most. Sound only where the caller drops the old arrays.",
            "step = jax.jit(step, donate_argnums=(0,))",
            safe=True,
        )
    if "arguments" in names:
        yield rule(
            "shard-arguments",
            f"The arguments take {format_size(space.arguments or 0)}: shard parameters and optimizer state "
            "over more chips.",
            "params = jax.device_put(params, shardings)  # NamedSharding(mesh, PartitionSpec(...)) for each",
            safe=True,
        )
    gradient = [a for a in listed if a.kind == "temp" and _GRADIENT.search(a.op_name or "")]
    if _sum(gradient) >= _SHARE * base:
        yield rule(
            "checkpoint",
            f"{format_size(_sum(gradient))} of the temporaries listed belong to the gradient (jvp in their "
            "names): recompute them in the backward pass.",
            "loss = jax.checkpoint(loss)  # or around each layer",
            safe=True,
        )
        yield rule(
            "microbatch",
            "Or work on the batch in parts and add up the gradients; the batch as a whole stays as it is.",
            "grads = jax.tree.map(jnp.add, grads, grad(params, part))  # for each part of the batch",
            safe=True,
        )
    wide = [a for a in listed if a.shape is not None and a.shape.dtype == "f32"]
    if _sum(wide) >= 2 * _SHARE * base:
        yield rule(
            "bf16",
            f"{format_size(_sum(wide))} of what is listed is float32: bfloat16 takes half of it at best, "
            "with fewer digits.",
            "x = x.astype(jnp.bfloat16)",
            safe=False,
        )
    if "rematerialized" in names:
        yield rule(
            "remat-search",
            "XLA rematerializes already; it can be told to search harder, which makes compiling slower.",
            "LIBTPU_INIT_ARGS='--xla_tpu_rematerialization_algo=PEAK_PRIORITY "
            "--xla_tpu_rematerialization_max_block_size_limit=32 "
            "--xla_tpu_rematerialization_block_effort_factor=10.0'",
            safe=True,
        )


def _elements(a: Allocation) -> int:
    """The bytes without padding: a small array in a bad layout is no question of sharding."""
    return int(a.unpadded_bytes if a.unpadded_bytes is not None else a.bytes)


def _sum(allocations: list[Allocation]) -> int:
    return sum(int(a.bytes) for a in allocations)
