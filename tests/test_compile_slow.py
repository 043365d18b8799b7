"""Compiling for chips that are not here, by the real compilers. Needs the extras tpu and gpu."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xlamem
from xlamem.compiler import Settings, compile_program, lower
from xlamem.compiler.inputs import shape_struct
from xlamem.readers.dump import read_dump
from xlamem.report import Target
from xlamem.targets import all_devices

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("libtpu") is None or find_spec("jax_cuda12_plugin") is None,
        reason="the compilers are not installed: pip install '.[tpu,gpu]'",
    ),
]

OOM_DUMP = Path(__file__).parents[1] / "fixtures" / "dumps" / "before_v5e_mlp_oom"
MLP = str(Path(__file__).parent / "programs" / "mlp.py")
TPUS = [device.name for device in all_devices() if device.kind == "tpu"]
GPUS = [device.name for device in all_devices() if device.gpu is not None]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAMEM_CACHE_DIR", str(tmp_path / "cache"))


def array(*shape: int) -> Any:
    return shape_struct(shape, jnp.float32)


def step(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        y = x
        for w in params:
            y = jnp.tanh(y @ w)
        return (y**2).sum()

    return jax.tree.map(lambda w, g: w - 0.1 * g, params, jax.grad(loss)(params))


def table(report: xlamem.MemoryReport) -> list[tuple[str, str, int]]:
    return [(a.space, a.kind, int(a.bytes)) for a in report.allocations]


def total(report: xlamem.MemoryReport) -> int:
    assert report.space is not None
    assert report.space.total is not None
    return int(report.space.total)


@pytest.mark.parametrize("target", TPUS + GPUS)
def test_every_target_answers_for_what_fits_and_what_does_not(target: str) -> None:
    for rows, fits in ((1024, True), (24_000_000, False)):
        report = xlamem.compile(step, [array(1024, 1024)] * 2, array(rows, 1024), target=target)
        assert report.target == Target(target)
        assert report.fits is fits
        assert report.space is not None
        assert report.space.arguments == (rows + 2048) * 4096
        assert report.allocations
        assert (report.space.over is not None) is (not fits)


@pytest.mark.parametrize(("target", "topology"), [("v5e", "v5e:2x2"), ("v2", "v2:2x2")])
def test_the_allocations_are_those_of_jaxs_own_way(target: str, topology: str, tmp_path: Path) -> None:
    """jax's documented way lowers with the topology's devices; ours without any."""
    code = f"""
import jax, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from jax.experimental import topologies
from test_compile_slow import step
topology = topologies.get_topology_desc(platform="tpu", topology_name={topology!r})
sharding = jax.sharding.SingleDeviceSharding(topology.devices[0])
def array(*shape): return jax.ShapeDtypeStruct(shape, "float32", sharding=sharding)
options = {{"xla_dump_to": {str(tmp_path / "theirs")!r}, "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_proto": True}}
jitted = jax.jit(step, donate_argnums=0)
jitted.trace([array(512, 512)] * 3, array(4096, 512)).lower().compile(compiler_options=options)
"""
    from xlamem.compiler import tpu
    from xlamem.compiler.target import parse

    environment = {**__import__("os").environ, **tpu.environment(parse(target))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)
    args = [array(512, 512)] * 3, array(4096, 512)
    ours = xlamem.compile(jax.jit(step, donate_argnums=0), *args, target=target, full=True)
    theirs = read_dump(tmp_path / "theirs")[0]
    assert table(ours) == table(theirs)
    assert [a.op_name for a in ours.allocations] == [a.op_name for a in theirs.allocations]


@pytest.mark.parametrize("target", ["v5e", "v7x", "h100"])
def test_stopping_early_changes_nothing(target: str) -> None:
    platform: Any = "cuda" if target == "h100" else "tpu"
    for rows in (4096, 30_000_000):
        program = lower(step, [array(512, 512)] * 3, array(rows, 512), platform=platform)
        brief = compile_program(program, target)
        whole = compile_program(program, target, Settings(full=True))
        assert table(brief) == table(whole)
        assert brief.fits is whole.fits


def test_the_bytes_are_those_of_the_dump(tmp_path: Path) -> None:
    report = xlamem.compile(
        step, [array(512, 512)] * 3, array(4096, 512), target="v5e", dump=tmp_path / "dump"
    )
    usage = next((tmp_path / "dump").glob("*memory-usage-report.txt")).read_text()
    assert f"Total bytes: {total(report)} " in usage


@pytest.mark.parametrize("target", ["v5e", "v5p", "h100"])
def test_a_dump_that_did_not_fit_is_compiled_for_other_chips(target: str) -> None:
    report = xlamem.compile(OOM_DUMP, target=target)
    assert report.fits is (target != "v5e")
    assert report.program == "jit_loss"
    assert report.space is not None
    if target == "v5e":
        assert total(report) == 38863540736  # what the dump itself says


def test_a_dump_of_a_spread_program_with_donation_gives_the_same_again(tmp_path: Path) -> None:
    args = [array(512, 512)] * 3, array(4096, 512)
    program = lower(
        jax.jit(step, donate_argnums=0), *args, platform="tpu", mesh={"data": 4}, shard=["x=data"]
    )
    first = compile_program(program, "v5e", Settings(dump=str(tmp_path / "dump")))
    again = xlamem.compile(tmp_path / "dump", target="v5e")
    assert table(again) == table(first)
    assert first.space is not None
    assert first.space.aliased == 3 * 512 * 512 * 4
    (tmp_path / "text").mkdir()
    for file in (tmp_path / "dump").glob("*before_optimizations.txt"):
        file.rename(tmp_path / "text" / file.name)
    assert table(xlamem.compile(tmp_path / "text", target="v5e")) == table(first)


def exported(function: Callable[..., Any], platforms: list[str]) -> bytes:
    from jax import export

    return bytes(export.export(jax.jit(function), platforms=platforms)(array(256, 256)).serialize())


@pytest.mark.skipif(find_spec("flatbuffers") is None, reason="jax.export needs flatbuffers")
@pytest.mark.parametrize("platforms", [["tpu"], ["tpu", "cuda"], ["cpu"]])
def test_artifacts_of_jax_export_and_stablehlo(platforms: list[str], tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return jnp.tanh(x @ x)

    (tmp_path / "f.jax_export").write_bytes(exported(f, platforms))
    (tmp_path / "f.mlir").write_text(jax.jit(f).lower(array(256, 256)).as_text(debug_info=True))
    direct = xlamem.compile(f, array(256, 256), target="h100")
    for name in ("f.jax_export", "f.mlir"):
        assert total(xlamem.compile(tmp_path / name, target="h100")) == total(direct)


@pytest.mark.parametrize(
    ("content", "name"), [(b"hello", "a.txt"), (b"\x0a\x03abc", "a.hlo.pb"), (b"", "a.mlir")]
)
def test_what_is_no_program_says_so(content: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(xlamem.ProgramError, match=rf"{name}: "):
        xlamem.compile(tmp_path / name, target="v5e")


def test_a_layout_that_the_user_forces_is_kept() -> None:
    from jax.experimental.layout import Format, Layout

    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    rows: Any = Format(Layout((0, 1)), device)
    x = array(1 << 20, 3)
    free = xlamem.compile(lambda x: x + 1, x, target="v5e")
    forced = xlamem.compile(jax.jit(lambda x: x + 1, in_shardings=rows, out_shardings=rows), x, target="v5e")
    sizes = [r.space.arguments for r in (free, forced) if r.space is not None]
    assert sizes == [16 << 20, 512 << 20]


def test_less_of_a_gpus_memory_can_be_allowed() -> None:
    args = [array(1024, 1024)] * 2, array(4_000_000, 1024)
    assert xlamem.compile(step, *args, target="h100").fits is True
    less = xlamem.compile(step, *args, target="h100", memory_fraction=0.5)
    assert less.fits is False
    assert less.space is not None
    assert less.space.capacity == 84942979072 // 2


def test_options_reach_the_compiler() -> None:
    x = array(8, 128)
    with pytest.raises(xlamem.CompilerError, match="No such compile option: 'xla_nonsense'"):
        xlamem.compile(lambda x: x, x, target="v5e", xla_options={"xla_nonsense": "1"})
    xlamem.compile(
        lambda x: x, x, target="v5e", xla_options={"xla_tpu_rematerialization_algo": "PEAK_PRIORITY"}
    )


def test_a_fused_product_without_tiles_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from xlamem.compiler import gpu, jax_private, worker
    from xlamem.compiler import job as jobs
    from xlamem.compiler.target import parse

    asked: list[Any] = []

    def refuse(module: Any, devices: Any, options: Any, **others: Any) -> Any:
        asked.append(options.get(gpu.TRITON_OPTION))
        if len(asked) == 1:
            raise RuntimeError(f"INTERNAL: {gpu.TRITON_FAILURE} that satisfy hlo: %dot.3")
        return object()

    monkeypatch.setattr(jax_private, "compile_module", refuse)
    monkeypatch.setattr(jobs, "backend", lambda platform: FakeBackend)
    sent: list[Any] = []
    program = lower(lambda x: x @ x, array(8, 8), platform="cuda")
    folder = Path(__import__("tempfile").mkdtemp())
    worker._compile(jobs.Job(parse("h100"), program=program), program, "cuda", folder, sent.append)
    assert asked == [None, False]
    assert [event.notes for event in sent if isinstance(event, jobs.Dumping)] == [(), (gpu.TRITON_NOTE,)]


class FakeBackend:
    """Has one device, and no compiler."""

    @staticmethod
    def devices(*args: Any) -> list[Any]:
        return [None]

    @staticmethod
    def compiler_options(target: Any) -> dict[str, str | bool]:
        return {}


def test_the_command_line_for_a_tpu_and_again_from_the_cache() -> None:
    command = [sys.executable, "-c", "from xlamem.commands import main; main()", "compile", f"{MLP}:step"]
    command += ["--inputs", f"{MLP}:inputs", "--target", "v5e", "-f", "json"]
    first, again = (json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in "12")
    assert first["reports"][0]["allocations"] == again["reports"][0]["allocations"]
    assert "answered from the cache" in again["reports"][0]["notes"]
    refused = subprocess.run([*command[:-2], "--set", "batch=40000000"], capture_output=True, text=True)
    assert refused.returncode == 3
    assert refused.stdout.startswith("Out of HBM on TPU v5e")
