"""What to do, per kind: the right words and flags, and nothing that the report does not support."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tpu_forms import CASES, OWN, log, only, read

from xlamem.advice.tpu_actions import actions
from xlamem.finding import Advice
from xlamem.readers.lines import normalise
from xlamem.readers.tpu_oom import read_tpu_oom
from xlamem.report import MemoryReport, Target


def names(report: MemoryReport) -> list[str]:
    return [advice.name for advice in actions(report)]


def named(report: MemoryReport, name: str) -> Advice:
    return next(advice for advice in actions(report) if advice.name == name)


def long_report(name: str) -> MemoryReport:
    return next(iter(read_tpu_oom(normalise(log(name)), "x.log")))


def first(name: str, form: str | None = None) -> MemoryReport:
    return next(r for r in read(log(name)) if form is None or r.source.format == form)


# The advice for each kind of report, in its order.
EXPECTED: dict[str, list[str]] = {
    "0.0.50.1_v5e_mlp": ["dump", "compile"],
    "0.0.7_v5e_padded_batchmat": ["full-report", "compile"],
    "0.0.23_v5e_padded_batchmat": ["layout", "compile"],
    "0.0.42.1_v5e_pallas_grid": ["blocks", "vmem-limit", "scoped-vmem-flag"],
    "0.0.42.1_v5p_pallas_scoped_vmem": ["blocks"],
    "0.0.42.1_v5e_scoped_vmem_xla_mlp": ["limit-lowered", "scoped-vmem-flag"],
    "0.0.42.1_v5e_pallas_smem": ["smem"],
    "0.0.42.1_v5e_pallas_sem": ["semaphores"],
}
OWN_EXPECTED: dict[str, list[str]] = {
    "early abort of an older compiler": ["full-report", "compile"],
    "cores": ["tables", "serialize-tables", "compile"],
    "mosaic": ["blocks", "vmem-limit", "scoped-vmem-flag"],
    "mosaic, no stop": ["blocks"],
    "scoped smem": ["smem"],
    "scoped figures alone": ["scoped-vmem-flag"],
    "tile memory": ["scratch", "collective-offload", "report-bug"],
    "tables": ["tables", "compile"],
    "one buffer, first sentence": ["shard", "compile"],
    "remat on a GPU": ["checkpoint"],
    "remat, only the limit": [],
}
RUNTIME = {
    "runtime-alloc": ["live-arrays", "donate", "sharded-init", "log-allocations"],
    "fragmentation": ["free-first", "host-init", "log-allocations"],
    "program-load": ["live-arrays", "donate", "fewer-programs", "compile", "log-allocations"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_real_logs(name: str) -> None:
    assert names(first(name)) == EXPECTED[name]


@pytest.mark.parametrize("name", OWN_EXPECTED)
def test_own_inputs(name: str) -> None:
    assert names(only(OWN[name][0])) == OWN_EXPECTED[name]


@pytest.mark.parametrize("name", CASES)
def test_run_time(name: str) -> None:
    text, kind, _, _ = CASES[name]
    assert names(only(text)) == RUNTIME[kind]


@pytest.mark.parametrize("name", [*EXPECTED, "0.0.23_v5e_mlp", "0.0.42.1_v5e_argsouts_edge"])
def test_every_advice_is_an_estimate(name: str) -> None:
    reports = read(log(name)) or [long_report(name)]
    for advice in (advice for report in reports for advice in actions(report)):
        assert (advice.verified, advice.provenance) == (False, "estimated")
        assert advice.text.endswith((".", "chips."))


def test_the_short_line_names_the_dump_and_the_program() -> None:
    dump = named(first("0.0.50.1_v5e_mlp"), "dump")
    assert "the files of jit_loss that end in after_optimizations-memory-usage-report.txt" in dump.text
    assert dump.how is not None
    assert "XLA_FLAGS=--xla_dump_to=DIR" in dump.how
    assert "xlamem explain DIR" in dump.how
    compiled = named(first("0.0.50.1_v5e_mlp"), "compile")
    assert compiled.how == "xlamem compile train.py:step --inputs train.py:inputs --target v5e"


def test_the_early_abort_names_its_flag() -> None:
    how = named(first("0.0.7_v5e_padded_batchmat"), "full-report").how
    assert how == "LIBTPU_INIT_ARGS=--xla_tpu_impure_oom_fast_exit_threshold=-1 python train.py"


def test_the_limits_of_a_kernel_are_computed_from_the_figures() -> None:
    report = only(OWN["mosaic"][0])  # 44.05M asked for: 45 MiB
    limit, flag = named(report, "vmem-limit"), named(report, "scoped-vmem-flag")
    assert limit.how is not None
    assert f"vmem_limit_bytes={45 << 20}" in limit.how
    assert flag.how == "LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=46080 python train.py"


def test_no_limit_is_raised_beyond_the_chip() -> None:
    report = first("0.0.42.1_v5e_pallas_grid")
    assert "vmem-limit" in names(replace(report, target=Target("v5e")))
    assert names(replace(report, target=Target("v5p"))) == [
        "blocks"
    ]  # 64 MiB in all, rounded up 65 are needed
    assert names(long_report("0.0.42.1_v5e_pallas_vmem")) == ["blocks"]


def test_blocks_are_named() -> None:
    text = named(first("0.0.42.1_v5p_pallas_scoped_vmem"), "blocks").text
    assert "f32[8192,2048] of f32[131072,2048], and 2 of them are held, 128.00MiB" in text
    assert "the whole array" in named(long_report("0.0.42.1_v5e_pallas_vmem"), "blocks").text


def test_a_fused_operation_is_the_compilers_bug() -> None:
    text = log("0.0.42.1_v5e_scoped_vmem_xla_mlp")
    text = text.replace("448.0K", "18.00M").replace("128.0K", "16.00M").replace("320.0K", "2.00M")
    assert names(only(text)) == ["report-bug", "scoped-vmem-flag"]


def test_a_lowered_limit_is_put_back() -> None:
    report = first("0.0.42.1_v5e_scoped_vmem_xla_mlp")
    assert "128.0KiB is below" in named(report, "limit-lowered").text
    assert named(report, "scoped-vmem-flag").how == (
        "LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=16384 python train.py"
    )


def test_semaphores_are_counted() -> None:
    assert "there is room for 512" in named(first("0.0.42.1_v5e_pallas_sem"), "semaphores").text


def test_one_buffer_is_sharded_or_laid_out_anew() -> None:
    assert "without padding it takes 2.34GiB" in named(first("0.0.23_v5e_padded_batchmat"), "layout").text
    report = first("0.0.42.1_v5e_scan_nocrash_stderr0", "tpu-one-buffer")
    assert names(report) == ["shard", "compile"]


def test_the_arguments_alone_fill_the_memory() -> None:
    assert names(first("0.0.42.1_v5e_args_stderr1", "remat")) == ["arguments"]


def test_what_is_missing_is_said() -> None:
    assert "About 51.33MiB are missing." in named(only(CASES["buffer"][0]), "live-arrays").text


def test_the_list_decides_what_is_advised() -> None:
    gradient = names(long_report("0.0.23_v5e_mlp"))
    assert "checkpoint" in gradient
    assert "remat-search" in gradient
    assert "donate" not in gradient
    arguments = names(long_report("0.0.42.1_v5e_argsouts_edge"))
    assert arguments[:2] == ["donate", "shard-arguments"]
    assert "checkpoint" not in arguments


def test_only_padding_makes_it_large() -> None:
    """A small array in a bad layout is no question of sharding."""
    report = long_report("unet_kernel_v2")
    small = tuple(replace(a, unpadded_bytes=1 << 20) for a in report.allocations)
    assert "sharding" in names(report)
    assert "sharding" not in names(replace(report, allocations=small))


def test_nothing_for_what_is_no_failure_or_not_a_tpu() -> None:
    report = first("0.0.50.1_v5e_mlp")
    assert actions(replace(report, fits=True)) == ()
    assert actions(replace(report, backend="gpu")) == ()
    assert actions(replace(report, kind="success")) == ()
    assert actions(replace(report, spaces=())) == ()


def test_other_failures() -> None:
    mismatch = only(
        "Executable(jit_f) expected parameter 0 of size 4096 (f32[1024]{0}) but got buffer with incompatible size "
        "3840 (f32[960]{0}):\n"
    )
    assert names(mismatch) == ["recompile", "relayout"]
    assert names(only("allocation_size_words <= int32_max; 2415919104; f32[37,64,4096]\n")) == ["split"]
    host = replace(first("0.0.50.1_v5e_mlp"), kind="host", source=replace(mismatch.source, format="x"))
    assert names(host) == ["offload-less"]
