"""The programs in ``examples``: they are what their docstrings say, trace, and compile for chips that are not here."""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from xlamem.commands import main
from xlamem.compiler import lower_in_child
from xlamem.compiler.spec import FunctionSpec

EXAMPLES = Path(__file__).parents[1] / "examples"
GIB = 2**30


@dataclass(frozen=True)
class Example:
    """A function of an example, with what it needs and an answer that does not change with the compiler."""

    file: str
    function: str
    inputs: str = "inputs"
    packages: tuple[str, ...] = ()
    #: Bytes of its arguments without padding.
    arguments: int = 0
    #: What traces in little time and memory.
    small: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{Path(self.file).stem}-{self.function}"

    @property
    def place(self) -> str:
        return f"{EXAMPLES / self.file}:{self.function}"

    @property
    def makes_inputs(self) -> str:
        return f"{EXAMPLES / self.file}:{self.inputs}"


#: Parameters of the GPT: embeddings and logits, positions, six layers, the last normalisation.
GPT = 2 * 8192 * 512 + 512 * 512 + 6 * (12 * 512 * 512 + 13 * 512) + 2 * 512

LIST = [
    Example(
        "gpt_adam.py",
        "step",
        packages=("flax", "optax"),
        arguments=3 * GPT * 4 + 4 + 32 * 513 * 4,
        small=("batch=2",),
    ),
    Example("unet_flax.py", "step", packages=("flax", "optax"), small=("batch=2", "size=16", "width=8")),
    Example("equinox_mlp.py", "step", packages=("equinox", "optax")),
    Example("keras_cnn.py", "step", packages=("keras",)),
    Example(
        "neural_tangents_unet.py", "kernel", packages=("neural_tangents", "frozendict"), small=("images=2",)
    ),
    Example("neural_tangents_unet.py", "pooled_kernel", packages=("neural_tangents", "frozendict")),
    Example("narrow_axes.py", "rows", "points"),
    Example("narrow_axes.py", "sum_by_segment", "labelled_points", arguments=2**20 * 4 * 4),
    Example("narrow_axes.py", "rotate_halves", "queries"),
    Example("narrow_axes.py", "rotate_pairs", "queries"),
    Example("narrow_axes.py", "stack_matrices", "matrices"),
    Example("narrow_axes.py", "carry_windows", "windows"),
    Example("narrow_axes.py", "attend", "heads"),
]
examples = pytest.mark.parametrize("example", LIST, ids=str)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAMEM_CACHE_DIR", str(tmp_path / "cache"))


def need(packages: Sequence[str], how: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install {how}")


def need_packages(example: Example) -> None:
    light = "neural_tangents" not in example.packages
    need(example.packages, "'.[examples]'" if light else "--no-deps neural-tangents frozendict")


def need_compiler(target: str) -> None:
    if target.startswith("v"):
        need(["libtpu"], "'.[tpu]'")
    else:
        need(["jax_cuda12_plugin"], "'.[gpu]'")


def compiled(example: Example, target: str, *options: str) -> dict[str, Any]:
    """The one report of ``xlamem compile``, as JSON."""
    command = ["compile", example.place, "--inputs", example.makes_inputs, "--target", target, *options]
    result = CliRunner().invoke(main, [*command, "--format", "json"])
    assert result.exit_code in (0, 3), result.output
    (report,) = json.loads(result.stdout)["reports"]
    assert report["fits"] is (result.exit_code == 0)
    return report  # type: ignore[no-any-return]


# What is written in them


def documented() -> Iterator[tuple[str, str]]:
    """The command lines in docstrings, with the file that each is in."""
    for file in sorted(EXAMPLES.glob("*.py")):
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        assert text, f"{file} has no docstring"
        for line in text.replace("\\\n", " ").splitlines():
            if line.startswith("xlamem "):
                yield file.name, line


@pytest.mark.parametrize(("file", "line"), list(documented()))
def test_command_lines_are_right(file: str, line: str) -> None:
    _, name, *rest = shlex.split(line)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    params = command.make_context(name, rest).params
    tree = ast.parse((EXAMPLES / file).read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for place in (params["program"], params["inputs"]):
        path, _, function = place.partition(":")
        assert path == f"examples/{file}"
        assert function in functions
    keywords = {argument.arg for argument in functions[params["inputs"].partition(":")[2]].args.args}
    assert {text.partition("=")[0] for text in params["settings"]} <= keywords


def test_every_example_is_listed_and_shows_how_to_run_it() -> None:
    assert {example.file for example in LIST} == {file for file, _ in documented()}


# That they work


@examples
def test_traces(example: Example) -> None:
    need_packages(example)
    spec = FunctionSpec(
        example.place,
        inputs=example.makes_inputs,
        settings=tuple((name, value) for name, _, value in (text.partition("=") for text in example.small)),
    )
    program = lower_in_child(spec, "cpu")
    assert program.devices == 1
    assert len(program.code) > 500


def test_the_shim_leaves_jax_as_it_was() -> None:
    need(["neural_tangents", "frozendict"], "--no-deps neural-tangents frozendict")
    script = (
        "import sys, jax, jax.interpreters.ad\n"
        "before = set(vars(jax.core)), set(vars(jax.interpreters.ad))\n"
        "from neural_tangents_shim import load\n"
        "nt, stax = load()\n"
        "assert before == (set(vars(jax.core)), set(vars(jax.interpreters.ad)))\n"
        "assert not {'jax.util', 'neural_tangents.experimental', 'tensorflow', 'tf2jax'} & set(sys.modules)\n"
        "assert load()[0] is nt and stax.Conv\n"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", script], cwd=EXAMPLES, env=environment, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["v5e", "h100"])
@examples
def test_compiles(example: Example, target: str) -> None:
    need_packages(example)
    need_compiler(target)
    report = compiled(example, target)
    hbm = report["spaces"]["hbm"]
    assert report["provenance"] == "compiled"
    parts = hbm["arguments"] + hbm["outputs"] - hbm["aliased"] + hbm["temps"] + hbm["constants"]
    assert 0 <= hbm["total"] - parts < 2**20  # what is left is thread-local
    assert hbm["peak"] <= hbm["total"]
    if example.arguments:
        slack = 1.4 if target == "v5e" else 1.0001  # tiles
        assert example.arguments <= hbm["arguments"] <= slack * example.arguments


# What is known of them


@pytest.mark.slow
def test_the_kernel_does_not_fit_a_v2() -> None:
    example = next(e for e in LIST if e.function == "kernel")
    need_packages(example)
    need_compiler("v2")
    report = compiled(example, "v2", "--host-backend")
    assert report["fits"] is False
    assert 20 * GIB < report["spaces"]["hbm"]["total"] < 60 * GIB
    text = CliRunner().invoke(
        main, ["compile", example.place, "--inputs", example.makes_inputs, "--target", "v2", "--host-backend"]
    )
    assert "f32[409600,1,64,64]{0,1,3,2:T(2,128)}" in text.stdout
    found = [a for a in report["allocations"] if a["shape"] == "f32[409600,1,64,64]{0,1,3,2:T(2,128)}"]
    assert 12.5 * GIB in [a["bytes"] for a in found if a["at_peak"]]


@pytest.mark.slow
def test_the_kernel_asks_for_the_backend() -> None:
    example = next(e for e in LIST if e.function == "pooled_kernel")
    need_packages(example)
    need_compiler("v2")
    here, there = (
        compiled(example, "v2", *how)["spaces"]["hbm"]["total"] for how in ((), ("--host-backend",))
    )
    assert here < 0.9 * there


@pytest.mark.slow
def test_a_gpt_grows_with_its_batch_and_donation_saves_its_state() -> None:
    example = LIST[0]
    need_packages(example)
    need_compiler("v5e")
    small, large, donated = (
        compiled(example, "v5e", *how)["spaces"]["hbm"]
        for how in (("--set", "batch=8"), (), ("--donate", "state"))
    )
    assert large["temps"] > 3 * small["temps"]
    assert donated["aliased"] == pytest.approx(3 * GPT * 4, rel=0.001)
    assert donated["total"] < large["total"]
