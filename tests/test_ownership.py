"""Who owns the bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlamem.analysis.ownership import (
    OWNERS,
    argument_role,
    temp_owner,
)
from xlamem.analysis.peak import peak
from xlamem.analysis.timeline import alive_at_peak
from xlamem.finding import Node, Peak
from xlamem.readers.dump import read_dump
from xlamem.report import MemoryReport

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"
MIB = 1 << 20


def report(folder: str) -> MemoryReport:
    return read_dump(DUMPS / folder)[0]


def at_peak(found: MemoryReport) -> Peak:
    return peak(found) or pytest.fail("no timeline")


def children(node: Node) -> dict[str, int]:
    return {child.name: child.bytes for child in node.children}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("state.params['layer0']['w']", "parameters"),
        ("params['layers'][3]['mlp']['kernel']", "parameters"),
        ("state.opt_state[0].mu['layer0']['w']", "optimizer state"),
        ("opt_state['nu']['params']['w']", "optimizer state"),
        ("trainable_variables[3]", "parameters"),
        ("batch['tokens']", "batch"),
        ("x", "batch"),
        ("labels", "batch"),
        ("ws[7]", "parameters"),
        ("v", "arguments"),
        ("carry[0]", "arguments"),
        (None, "arguments"),
    ],
)
def test_arguments_by_name(name: str | None, role: str) -> None:
    assert argument_role(name) == role


@pytest.mark.parametrize(
    ("name", "op_name", "span", "copy", "owner"),
    [
        ("fusion.3", "jit(f)/jvp()/tanh", (3, 9), False, "saved activations"),
        ("fusion.3", "jit(f)/jvp()/tanh", (3, 6), False, "workspace"),  # gone before the backward pass
        ("fusion.3", "jit(f)/transpose(jvp())/dot", (3, 9), False, "workspace"),
        ("fusion.3", "jit(f)/tanh", (3, 9), False, "workspace"),
        ("fusion.3", None, (3, 9), False, "workspace"),
        ("fusion.3", "jit(f)/jvp()/tanh", None, False, "workspace"),
        ("fusion.3.remat2", "jit(f)/jvp()/tanh", (3, 9), False, "rematerialized"),
        ("copy.3", "jit(f)/jvp()/tanh", (3, 9), True, "layout copies"),
    ],
)
def test_temporaries(
    name: str, op_name: str | None, span: tuple[int, int] | None, copy: bool, owner: str
) -> None:
    assert temp_owner(name, op_name, span, [8, 10], copy) == owner
    assert owner in OWNERS


def test_a_training_step() -> None:
    tree = at_peak(report("train")).owners
    found = children(tree)
    trees = 2 * (MIB + 2048)
    assert found["parameters"] == trees
    assert found["optimizer state"] == 2 * trees
    assert found["batch"] == 32 * MIB
    (optimizer,) = (node for node in tree.children if node.name == "optimizer state")
    (state,) = optimizer.children
    assert children(state) == {"['mu']": trees, "['nu']": trees}
    assert optimizer.known == "name"


def test_saved_activations_through_a_loop() -> None:
    # The stacks that the forward loop writes and the backward loop reads: two of f32[6,65536,5,5], one of bf16,
    # one of pred, two of f32[6,65536,1,1].
    found = children(at_peak(report("tpu_fit")).owners)
    stacks = 2 * 1610612736 + 805306368 + 402653184 + 2 * 1572864
    assert found["saved activations"] == pytest.approx(stacks, abs=1024)
    assert found["layout copies"] == 134217728


def test_rematerialized_and_saved() -> None:
    found = report("tpu_oom")
    rows = alive_at_peak(found)
    owners = children(at_peak(found).owners)
    assert owners["rematerialized"] == sum(
        a.bytes for a in rows if ".remat" in (a.name or "") and a.kind == "temp"
    )
    assert owners["parameters"] == 8 * 4096000


def test_trees_add_up() -> None:
    for folder in ("tpu_fit", "tpu_oom", "train", "cpu", "padded"):
        found = report(folder)
        space = found.space
        assert space is not None
        for tree in (at_peak(found).owners, at_peak(found).scopes, at_peak(found).sources):
            assert tree.bytes == space.peak
            assert sum(node.bytes for node in tree.children) == tree.bytes
            assert sum(node.padding for node in tree.children) == tree.padding
            assert all(a.bytes >= b.bytes for a, b in zip(tree.children, tree.children[1:], strict=False))


def test_by_scope_and_source() -> None:
    scopes = at_peak(report("tpu_fit")).scopes
    assert "jit(loss)" in children(scopes)
    (jit,) = (node for node in scopes.children if node.name == "jit(loss)")
    assert set(children(jit)) >= {"jvp()", "transpose(jvp())"}
    sources = at_peak(report("tpu_oom")).sources
    (file,) = (node for node in sources.children if node.name == "/home/user/project/progs.py")
    assert "line 26" in children(file)


def test_little_of_the_peak_is_without_a_name() -> None:
    for folder in ("tpu_fit", "tpu_oom", "train"):
        tree = at_peak(report(folder)).scopes
        assert children(tree).get("(no name)", 0) < 0.01 * tree.bytes
