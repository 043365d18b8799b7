"""Compiling: for the CPU here, which every machine has; the targets that are not here are in test_compile_slow."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xlamem
from xlamem.compiler import Program, Settings, answer, child, compile_program, foreign, lower
from xlamem.compiler.cache import Cache
from xlamem.compiler.foreign import is_foreign
from xlamem.compiler.inputs import shape_struct
from xlamem.compiler.job import Job
from xlamem.compiler.spec import FunctionSpec
from xlamem.compiler.target import parse
from xlamem.errors import CompilerError, CompileTimeoutError, MissingExtraError, ProgramError, UserCodeError
from xlamem.report import Source

PROGRAMS = Path(__file__).parent / "programs"
MLP = str(PROGRAMS / "mlp.py")
BROKEN = str(PROGRAMS / "broken.py")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache and a place for temporary folders of each test's own; nothing may be left in the latter."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XLAMEM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield
    assert [p.name for p in (tmp_path / "temporary").iterdir() if p.name.startswith("xlamem-")] == []


def array(*shape: int) -> Any:
    return shape_struct(shape, jnp.float32)


def spec(function: str, **others: Any) -> FunctionSpec:
    return FunctionSpec(function, **others)


def compiled(function: str, **others: Any) -> xlamem.MemoryReport:
    return answer(Job(parse("cpu"), function=spec(function, **others)), Settings(timeout=60))


# What comes out


def test_a_function_and_shapes_give_a_report() -> None:
    def matmul(a: Any, b: Any) -> Any:
        return jnp.tanh(a @ b)

    report = xlamem.compile(matmul, array(256, 512), array(512, 128), target="cpu")
    assert report.provenance == "compiled"
    assert report.source == Source("matmul", "compile")
    assert report.space is not None
    assert report.space.arguments == (256 * 512 + 512 * 128) * 4
    assert report.space.outputs == 256 * 128 * 4
    assert [a.op_name for a in report.allocations if a.kind == "argument"] == ["a", "b"]
    assert any(a.source_file == __file__ for a in report.allocations)
    assert any("compiled in" in note and "memory only" in note for note in report.notes)


def test_both_ways_give_the_same_allocations_and_the_whole_one_flops() -> None:
    program = lower(lambda a: jnp.tanh(a @ a) @ a, array(256, 256), platform="cpu")
    brief = compile_program(program, "cpu")
    whole = compile_program(program, "cpu", Settings(full=True))
    assert brief.allocations == whole.allocations
    assert any("floating-point operations" in note for note in whole.notes)


def test_donation_of_a_jitted_function_is_kept() -> None:
    def add(state: Any, x: Any) -> Any:
        return state + x

    args = array(512, 512), array(512, 512)
    plain = xlamem.compile(add, *args, target="cpu")
    jitted = xlamem.compile(jax.jit(add, donate_argnums=0), *args, target="cpu")
    named = xlamem.compile(add, *args, target="cpu", donate=["state"])
    sizes = [r.space.aliased for r in (plain, jitted, named) if r.space is not None]
    assert sizes == [0, 1 << 20, 1 << 20]


def test_what_is_no_array_is_built_in() -> None:
    def apply(params: Any, x: Any, *, activation: Any, scale: float) -> Any:
        return params["activation"](x @ params["w"]) * scale + activation(x).sum()

    params = {"w": array(64, 64), "activation": jnp.tanh, "name": "layer"}
    kwargs = {"activation": jax.nn.relu, "scale": 2.0}
    report = xlamem.compile(apply, params, array(8, 64), kwargs=kwargs, target="cpu")
    names = {a.op_name for a in report.allocations if a.kind == "argument"}
    assert names >= {"params['w']", "x"}


def test_static_arguments_of_a_jitted_function() -> None:
    step = jax.jit(lambda x, n: x.reshape(n, -1), static_argnums=1)
    assert xlamem.compile(step, array(8, 8), 4, target="cpu").fits is None


def test_arrays_count_as_their_shapes_and_nothing_runs() -> None:
    ran = []

    def step(x: Any) -> Any:
        jax.debug.callback(lambda: ran.append(1))
        return x * 2

    report = xlamem.compile(step, jnp.ones((4, 4), jnp.bfloat16), target="cpu")
    assert report.space is not None
    assert report.space.arguments == 32
    assert ran == []


def test_the_backend_is_that_of_the_target_while_tracing_and_only_then() -> None:
    seen = []

    @jax.jit
    def ask(x: Any) -> Any:
        seen.append(jax.default_backend())
        return x

    ask(1.0)
    lower(ask, 1.0, platform="tpu")
    lower(ask, 1.0, platform="cuda")
    lower(ask, 1.0, platform="cpu", as_target=False)
    ask(1.0)
    assert seen == ["cpu", "tpu", "gpu"]  # the last two were traced already, in this process, by itself
    assert jax.default_backend() == "cpu"


def test_what_the_function_raises_is_the_users_to_see() -> None:
    with pytest.raises(ZeroDivisionError):
        xlamem.compile(lambda x: x * (1 // 0), 1.0, target="cpu")


def test_a_mesh_and_shardings() -> None:
    def loss(params: Any, batch: Any) -> Any:
        return ((batch["x"] @ params) ** 2).mean()

    args = array(64, 64), {"x": array(1024, 64), "n": array()}
    whole = lower(loss, *args, platform="cpu")
    spread = lower(loss, *args, platform="cpu", mesh={"data": 4}, shard=["batch=data"])
    assert (whole.devices, spread.devices) == (1, 4)
    report = compile_program(spread, "cpu:4")
    assert report.space is not None
    assert report.space.arguments == (64 * 64 + 256 * 64) * 4
    assert any("spread over 4 devices" in note for note in report.notes)


@pytest.mark.parametrize(
    ("shard", "why"),
    [
        ("butch=data", "no input is called butch; there are params, batch['x']"),
        ("batch['x']=data,None,None", "batch['x'] has 2 axes"),
        ("params=model", "cannot be spread"),
    ],
)
def test_a_sharding_that_does_not_match_says_why(shard: str, why: str) -> None:
    def loss(params: Any, batch: Any) -> Any:
        return batch["x"] @ params

    with pytest.raises(ProgramError) as raised:
        lower(loss, array(64, 64), {"x": array(8, 64)}, platform="cpu", mesh={"data": 4}, shard=[shard])
    assert why in str(raised.value).replace("args[1]['x']", "batch['x']")


def test_shardings_of_the_inputs_are_kept() -> None:
    mesh = jax.sharding.AbstractMesh((2, 2), ("data", "model"))
    by: Any = jax.sharding.PartitionSpec
    struct: Any = jax.ShapeDtypeStruct
    x = struct((64, 64), jnp.float32, sharding=jax.sharding.NamedSharding(mesh, by("data", "model")))
    program = lower(lambda x: x * 2, x, platform="cpu")
    assert program.devices == 4
    report = compile_program(program, "cpu:4")
    assert report.space is not None
    assert report.space.arguments == 64 * 64


# On the command line


def test_a_function_in_a_file_with_an_inputs_function() -> None:
    report = compiled(f"{MLP}:step", inputs=f"{MLP}:inputs", settings=(("batch", "64"), ("layers", "2")))
    assert report.space is not None
    assert report.space.arguments == (2 * 512 * 512 + 2 * 64 * 512) * 4
    assert {a.op_name for a in report.allocations if a.kind == "argument"} >= {"params[0]", "batch['x']"}
    assert report.source.name == f"{MLP}:step"


def test_arguments_by_position_and_by_name() -> None:
    report = compiled(f"{BROKEN}:helper", arguments=("f32[8,16]",), keywords=(("b", "bf16[16,4]"),))
    assert report.space is not None
    assert report.space.arguments == 8 * 16 * 4 + 16 * 4 * 2


def test_a_module_is_found_from_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROGRAMS)
    assert compiled("mlp:step", inputs="mlp:inputs").provenance == "compiled"


def test_inputs_are_made_only_if_asked_for() -> None:
    with pytest.raises(UserCodeError) as raised:
        compiled(f"{BROKEN}:helper", inputs=f"{BROKEN}:needs_values")
    assert "--real-inputs" in str(raised.value)
    with pytest.raises(UserCodeError, match=r"helper.. missing 1 required"):
        compiled(f"{BROKEN}:helper", inputs=f"{BROKEN}:needs_values", real_inputs=True)


@pytest.mark.parametrize(
    ("function", "others", "kind", "why"),
    [
        ("nothere.py:f", {}, ProgramError, "nothere.py: no such file"),
        (f"{MLP}:stepp", {}, ProgramError, "has no 'stepp'; there is step"),
        (MLP, {}, ProgramError, "names no function; write file.py:function"),
        ("no.such.module:f", {}, ProgramError, "no module is called no.such.module"),
        (f"{BROKEN}:not_a_function", {}, ProgramError, "is no function but a int"),
        (
            f"{BROKEN}:mismatched",
            {"arguments": ("f32[3,4]", "f32[5,6]")},
            UserCodeError,
            "in helper: TypeError: dot_",
        ),
        (f"{BROKEN}:mismatched", {"arguments": ("f32[3]",)}, UserCodeError, "missing 1 required positional"),
        (
            f"{BROKEN}:helper",
            {"arguments": ("q3[3]", "f32[3]")},
            ProgramError,
            "no element type is called 'q3'",
        ),
        (f"{BROKEN}:leave", {"arguments": ("f32[3]",)}, UserCodeError, "in leave: SystemExit: no GPU here"),
        (f"{MLP}:step", {"inputs": f"{MLP}:inputs", "donate": ("0",)}, ProgramError, "in its own jax.jit"),
        (
            f"{BROKEN}:crash",
            {"arguments": ("f32[3]",)},
            CompilerError,
            "SIGFPE while tracing; its last words:\n  Check",
        ),
    ],
)
def test_what_goes_wrong_says_what(function: str, others: Any, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind) as raised:
        compiled(function, **others)
    assert why in str(raised.value)


def test_an_exception_of_the_users_has_their_frames_only(tmp_path: Path) -> None:
    source = tmp_path / "theirs.py"
    source.write_text(
        "import jax.numpy as jnp\n\ndef f(x):\n    return g(x)\n\ndef g(x):\n    return jnp.dot(x, x.T.T)\n"
    )
    with pytest.raises(UserCodeError) as raised:
        compiled(f"{source}:f", arguments=("f32[3,4]",))
    assert raised.value.exception == "TypeError"
    frames = [line for line in raised.value.traceback.splitlines() if line.startswith("  File")]
    assert [line.split(", ")[1:] for line in frames] == [["line 4", "in f"], ["line 7", "in g"]]


def test_code_that_does_not_parse_or_load(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def f(:\n")
    (tmp_path / "two.py").write_text("\nimport no_such_package\n")
    with pytest.raises(UserCodeError, match=r"one\.py:1, in <module>: SyntaxError"):
        compiled(f"{tmp_path}/one.py:f")
    with pytest.raises(UserCodeError, match=r"two\.py:2, in <module>: ModuleNotFoundError: No module named"):
        compiled(f"{tmp_path}/two.py:f")


# The child


def run(*arguments: str, **others: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from xlamem.commands import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **others)


def test_the_command_line_gives_json_and_exit_codes() -> None:
    done = run("compile", f"{MLP}:step", "--inputs", f"{MLP}:inputs", "--target", "cpu", "-f", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["command"] == "compile"
    assert document["reports"][0]["provenance"] == "compiled"
    failed = run("compile", f"{BROKEN}:leave", "--arg", "f32[3]", "--target", "cpu")
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: ")
    assert run("compile", "x.py:f", "--target", "v9").returncode == 2
    assert run("compile", "x.py:f", "--target", "cpu", "--arg", "f32[a]").returncode == 2
    assert run("compile", "x.mlir", "--target", "cpu", "--arg", "f32[3]").returncode == 2


def test_asked_again_it_is_answered_without_jax(tmp_path: Path) -> None:
    arguments = ("compile", f"{MLP}:step", "--inputs", f"{MLP}:inputs", "--target", "cpu", "-f", "json")
    first = json.loads(run(*arguments).stdout)
    code = (
        "import sys; from xlamem.commands import main\n"
        f"try: main({list(arguments)!r})\n"
        "finally: print('jax' in sys.modules, file=sys.stderr)"
    )
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    second = json.loads(again.stdout)
    assert again.stderr.strip() == "False"
    assert second["reports"][0]["allocations"] == first["reports"][0]["allocations"]
    assert "answered from the cache" in second["reports"][0]["notes"]
    assert "answered from the cache" not in run(*arguments, "--no-cache").stdout


def test_the_cache_command(tmp_path: Path) -> None:
    Cache().put("ab" * 32, [1])
    assert json.loads(run("cache", "-f", "json").stdout)["entries"] == 1
    assert "Removed: 1 entry" in run("cache", "--clear").stdout
    assert json.loads(run("cache", "-f", "json").stdout)["entries"] == 0


def test_a_time_limit() -> None:
    job = Job(parse("cpu"), function=spec(f"{BROKEN}:sleep", arguments=("f32[3]",)))
    with pytest.raises(
        CompileTimeoutError, match=r"no answer after 3 s, while .*; allow more with --timeout"
    ):
        answer(job, Settings(timeout=3))


def _processes(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("sent", "status"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGKILL", -9)])
def test_however_the_parent_ends_nothing_is_left(tmp_path: Path, sent: str, status: int) -> None:
    folder = tmp_path / "temporary"
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from xlamem.commands import main; main()"
    )
    command = [sys.executable, "-c", code, "compile", f"{BROKEN}:sleep", "--arg", "f32[3]", "--target", "cpu"]
    parent = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _until(lambda: bool(_processes(folder)))
    time.sleep(0.5)
    parent.send_signal(signal.Signals[sent])
    assert parent.wait(timeout=10) == status
    _until(lambda: not _processes(folder) and not list(folder.glob("xlamem-*")))


def _until(condition: Any) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


FAKE = """
import os, pickle, sys, time
from multiprocessing.connection import Connection
from xlamem.compiler import job as jobs
pipe = Connection(int(sys.argv[1]), readable=False)
folder = sys.argv[2]
job = pickle.load(open(folder + "/job.pickle", "rb"))
def dumping(notes=()):
    os.makedirs(folder + "/dump", exist_ok=True)
    pipe.send(jobs.Lowered(job.program))
    pipe.send(jobs.Dumping(folder + "/dump", "cpu", None, notes))
"""


def fake(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child be ``code``."""
    monkeypatch.setattr(
        child, "command", lambda writer, folder: [sys.executable, "-c", FAKE + code, str(writer), str(folder)]
    )


def fake_answer(target: str = "cpu", **settings: Any) -> xlamem.MemoryReport:
    program = Program("jit_f", b"", None)
    return compile_program(program, target, Settings(timeout=20, **settings))


def test_a_crash_after_the_answer_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = Path(__file__).parents[1] / "fixtures" / "dumps" / "cpu"
    fake(
        monkeypatch,
        f"dumping()\nimport shutil, glob\nfor f in glob.glob({str(dumps)!r} + '/module_0000*'): shutil.copy(f, folder + '/dump')\n"
        "open(folder + '/dump/module_0000.jit_f.cpu_after_optimizations-memory-usage-report.pb', 'w')\nos.abort()",
    )
    assert fake_answer().provenance == "compiled"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (
            "os.write(2, b'F0000 boom\\n'); os.abort()",
            "ended by SIGABRT while starting; its last words:\n  F0000 boom",
        ),
        ("os.kill(os.getpid(), 9)", "SIGKILL while starting; the machine may have run out of memory"),
        ("sys.exit(3)", "ended with exit code 3"),
        ("dumping(); pipe.send(jobs.Compiled())", "left no buffer assignment"),
        (
            "dumping(); pipe.send(jobs.OutOfMemory('RESOURCE_EXHAUSTED: 5G'))",
            "assignment: RESOURCE_EXHAUSTED: 5G",
        ),
    ],
)
def test_the_ways_in_which_a_compiler_dies(monkeypatch: pytest.MonkeyPatch, code: str, why: str) -> None:
    fake(monkeypatch, code)
    with pytest.raises(CompilerError) as raised:
        fake_answer()
    assert why in str(raised.value)


def test_what_xla_says_every_time_is_not_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(
        monkeypatch,
        "os.write(2, b'WARNING: All log messages before absl::InitializeLog()\\n\\nreason\\n'); os.abort()",
    )
    with pytest.raises(CompilerError, match=r"its last words:\n  reason$"):
        fake_answer()


def test_a_full_disk_is_told_from_other_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "os.abort()")
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 0}))
    with pytest.raises(CompilerError, match=r"no space is left in .*temporary.*set TMPDIR"):
        fake_answer()


def test_no_folder_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with pytest.raises(CompilerError, match=r"no folder can be made in /nonexistent"):
        fake_answer()


@pytest.mark.parametrize(("target", "extra"), [("v5e", "xlamem[tpu]"), ("h100", "xlamem[gpu]")])
def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, target: str, extra: str) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="not installed: pip install") as raised:
        fake_answer(target)
    assert extra in str(raised.value)
    assert "\n" not in str(raised.value)


def test_another_process_with_libtpu_is_explained() -> None:
    from xlamem.compiler.worker import _explained

    said = 'ABORTED: Internal error when accessing libtpu multi-process lockfile. Run "$ sudo rm /tmp/libtpu_lockfile".'
    assert "another process holds libtpu" in _explained(said)


def test_a_jax_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    from xlamem.compiler import jax_private

    monkeypatch.setattr(jax, "__version_info__", (0, 4, 30))
    monkeypatch.setattr(jax, "__version__", "0.4.30")
    with pytest.raises(
        CompilerError, match=r"needs jax 0\.\d+\.0 or newer, and this is 0\.4\.30: pip install -U jax"
    ):
        jax_private.check_version()


def test_a_private_name_that_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    from xlamem.compiler import jax_private

    monkeypatch.delattr("jax._src.config.jax_xla_profile_version")
    with (
        pytest.raises(CompilerError, match=r"has changed inside .*known to work with"),
        jax_private.backend_name("tpu"),
    ):
        pass


def test_attached_devices_are_those_that_are_here() -> None:
    report = xlamem.compile(lambda x: x @ x, array(64, 64), target="attached")
    assert report.backend == jax.default_backend()


def test_a_share_of_the_memory_lies_between_0_and_1() -> None:
    with pytest.raises(ProgramError, match="between 0 and 1, not at 75"):
        fake_answer("h100", memory_fraction=75)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []
    fake(monkeypatch, "pipe.send(jobs.Stage('compiling')); time.sleep(0.3); os.abort()")
    with pytest.raises(CompilerError, match="while compiling"):
        fake_answer(progress=lambda stage, elapsed: seen.append((stage, elapsed)))
    assert {stage for stage, _ in seen} == {"starting", "compiling"}
    assert seen == sorted(seen, key=lambda one: one[1])


def test_the_environment_is_as_it_was() -> None:
    before = dict(os.environ)
    xlamem.compile(lambda x: x, 1.0, target="cpu")
    assert dict(os.environ) == before


# Answers that must not say more than is known


CPU_DUMP = Path(__file__).parents[1] / "fixtures" / "dumps" / "cpu"

ASSIGNED = f"""
dumping()
import shutil, glob
for f in glob.glob({str(CPU_DUMP)!r} + '/module_0000*'): shutil.copy(f, folder + '/dump')
open(folder + '/dump/module_0000.jit_f.cpu_after_optimizations-memory-usage-report.pb', 'w')
"""


@pytest.mark.parametrize("name", ["SIGFPE", "SIGKILL"])
def test_a_crash_of_a_full_compile_is_one_even_after_the_buffers(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fake(monkeypatch, f"{ASSIGNED}\nimport signal; os.kill(os.getpid(), signal.{name})")
    why = f"the compiler's process was ended by {name} while generating code, after the buffers were assigned"
    with pytest.raises(CompilerError, match=why):
        fake_answer(full=True)
    assert any("memory only" in note for note in fake_answer().notes)


def test_more_devices_than_are_used_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, f"{ASSIGNED}\nos.abort()")
    note = "compiled for 1 of the 4 devices of cpu:4: no input has a sharding; cut inputs with --mesh and --shard"
    assert note in fake_answer("cpu:4").notes
    assert not any("compiled for" in text for text in fake_answer("cpu").notes)
    two = Program("jit_f", b"", None, 2)
    notes = compile_program(two, "cpu:4", Settings(timeout=20)).notes
    assert "spread over 2 of the 4 devices of cpu:4; all figures are of one of them" in notes


def test_a_mesh_of_more_devices_than_the_target_has_says_to_name_a_slice(tmp_path: Path) -> None:
    source = tmp_path / "meshed.py"
    source.write_text(
        "import jax\n\ndef inputs():\n    jax.make_mesh((2, 2), ('a', 'b'))\n\ndef f(x):\n    return x\n"
    )
    with pytest.raises(UserCodeError, match=r"cpu has 1 device, and the mesh needs 4: .* --target cpu:4\)"):
        compiled(f"{source}:f", inputs=f"{source}:inputs")


def test_numbers_of_a_compile_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from xlamem.explanation import explain
    from xlamem.show.json import report_object

    fake(monkeypatch, f"{ASSIGNED}\npipe.send(jobs.Compiled(2e9, 1e6))")
    report = fake_answer(full=True)
    assert report.flops == 2e9
    assert report.compile_seconds is not None
    shown = report_object(explain(report))
    assert (shown["flops"], shown["compile_seconds"]) == (2e9, report.compile_seconds)
    assert any("2e+09 floating-point operations" in note for note in report.notes)


def test_a_dump_that_cannot_be_kept_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, f"{ASSIGNED}\nos.abort()")
    (tmp_path / "file").write_text("")
    with pytest.raises(CompilerError) as raised:
        fake_answer(dump=str(tmp_path / "file" / "dump"))
    assert str(raised.value) == (
        f"{tmp_path}/file/dump: the compiler's dump cannot be written there: Not a directory"
    )

    def full(*paths: object, **others: object) -> None:
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")] * 5)

    monkeypatch.setattr("shutil.copytree", full)
    with pytest.raises(CompilerError) as raised:
        fake_answer(dump=str(tmp_path / "dump"))
    assert str(raised.value) == (
        f"{tmp_path}/dump: the compiler's dump cannot be written there: No space left on device"
    )


# What a file is, whatever it is called


def _export() -> bytes:
    """The frame of an artifact of jax.export: a root, its description, the table, and the program."""
    return struct.pack("<IHHHxxiI", 12, 6, 8, 4, 8, 16) + b"ML\xefR" + bytes(16)


@pytest.mark.parametrize(
    "data",
    [
        b"ML\xefR rest",
        b"// a comment\n#loc = loc(unknown)\nmodule @jit_f attributes {} {\n}",
        b"HloModule jit_f, entry_computation_layout={()->f32[]}\n\nENTRY main {\n}",
        b"\x0a\x05jit_f\x12\x04main",
        b"\x0a\x0d\x0a\x05jit_f\x12\x04main",
        _export(),
    ],
)
def test_a_program_is_known_by_what_it_holds(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.bin").write_bytes(data)
    assert is_foreign(str(tmp_path / "model.bin"))


@pytest.mark.parametrize("data", [b"", b"\nHello there, world", b"import jax\n", bytes(64), b"\x80\x04" * 20])
def test_other_files_say_what_was_looked_for(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.bin").write_bytes(data)
    with pytest.raises(ProgramError, match=r"looked for an artifact of jax\.export, StableHLO .* HloProto"):
        is_foreign(str(tmp_path / "model.bin"))


def test_names_that_are_no_files() -> None:
    assert not is_foreign("train.py:step")
    assert not is_foreign("package.module:step")
    assert not is_foreign(MLP)
    with pytest.raises(ProgramError, match=r"^nothere\.bin: no such file or folder"):
        is_foreign("nothere.bin")


def test_an_hlo_proto_of_any_name_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "saved").write_bytes(
        next(CPU_DUMP.parent.glob("before_v5e_mlp_oom/*.before_optimizations.hlo.pb")).read_bytes()
    )
    assert is_foreign(str(tmp_path / "saved"))
    assert foreign.load(str(tmp_path / "saved"), "tpu").name == "jit_loss"


# What is printed


def test_a_cuda_plugin_that_does_not_load_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    from xlamem.compiler import jax_private

    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU, and its plugin had better load")
    logger = logging.getLogger("jax._src.xla_bridge")

    def tell() -> None:
        try:
            raise RuntimeError("Unable to load CUDA. Is it installed?")
        except RuntimeError:
            logger.exception("Jax plugin configuration error: Exception when calling %s", "jax_plugins.x")

    with jax_private.quiet_plugins():
        tell()
        logger.warning("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]
    tell()
    assert len(caplog.records) == 2


def test_the_spinner_has_no_colours_where_none_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import re

    from xlamem.commands.spinner import spinner

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def written(color: bool) -> list[str]:
        monkeypatch.setattr(sys, "stderr", out := Terminal())
        with spinner("compiling", color) as progress:
            assert progress is not None
            progress("tracing", 1.0)
            time.sleep(0.2)
        return re.findall(r"\x1b\[[\d;]*m", out.getvalue())

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not any(code for code in written(False) if re.search(r"[34]\d", code))
    assert any(re.search(r"3\d", code) for code in written(True))


def test_a_compile_for_a_tpu_says_what_it_leaves_out() -> None:
    from xlamem.compiler import tpu

    assert any("no device took part" in note and "fragmentation" in note for note in tpu.NOTES)
