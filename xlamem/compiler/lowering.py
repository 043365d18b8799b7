"""From a Python function and its inputs to a :class:`~xlamem.compiler.program.Program`.

No device and no compiler of the target takes part: jax lowers for a platform that is not there. The same is done
in the user's own process, for :func:`xlamem.compile`, and in the child, for the command line.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from xlamem.compiler import jax_private
from xlamem.compiler.inputs import abstract, is_array, sharded
from xlamem.compiler.program import Program
from xlamem.compiler.target import Platform
from xlamem.errors import ProgramError

__all__ = ["lower"]

#: What ``jax.default_backend()`` calls a platform.
BACKENDS: Mapping[Platform, str] = {"tpu": "tpu", "cuda": "gpu", "cpu": "cpu"}


def lower(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    platform: Platform,
    *,
    donate: Sequence[int | str] = (),
    static: Sequence[int | str] = (),
    mesh: Mapping[str, int] | None = None,
    shard: Sequence[str] = (),
    as_target: bool = True,
) -> Program:
    """Trace ``function`` on the shapes of its inputs and lower it for ``platform``.

    A function that is jitted keeps its own options. ``donate`` and ``static`` name arguments of one that is not,
    by position or by name. What the function raises is not caught.

    Raises:
        ProgramError: ``donate`` or ``static`` with a jitted function, or a sharding that does not match.
    """
    if hasattr(function, "lower") and (donate or static):
        raise ProgramError(
            "the function is jitted: name donated and static arguments there, in its own jax.jit"
        )
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax_private.quiet_plugins())
        positional, named = jax.tree.map(abstract, (tuple(args), dict(kwargs)))
        if as_target:
            stack.enter_context(jax_private.backend_name(BACKENDS[platform]))
        if mesh:
            over = jax.sharding.AbstractMesh(tuple(mesh.values()), tuple(mesh))
            positional, named = sharded(function, positional, named, over, shard)
            stack.enter_context(jax.sharding.use_abstract_mesh(over))
        elif shard:
            raise ProgramError("a sharding needs a mesh: --mesh data=4")
        stack.enter_context(jax_private.lowering_for(platform))
        lowered = _lowered(function, positional, named, donate, static)
    module = lowered.compiler_ir("stablehlo")
    return program_of(module, platform)


def program_of(module: Any, platform: Platform | None) -> Program:
    """The program in an MLIR module."""
    attributes = module.operation.attributes
    name = str(attributes["sym_name"].value) if "sym_name" in attributes else "module"
    devices = int(attributes["mhlo.num_partitions"].value) if "mhlo.num_partitions" in attributes else 1
    replicas = int(attributes["mhlo.num_replicas"].value) if "mhlo.num_replicas" in attributes else 1
    if replicas > 1:
        raise ProgramError(
            f"{name} runs as {replicas} replicas (pmap?): only programs spread by shardings compile"
        )
    return Program(name, jax_private.bytecode(module), platform, devices, shardy=_is_shardy(module))


def main_function(module: Any) -> Any:
    """The function of an MLIR module that is its entry.

    Raises:
        ProgramError: there is none.
    """
    from jaxlib.mlir import ir

    for operation in module.body.operations:
        attributes = operation.attributes  # which has no method "get"
        if "sym_name" in attributes and ir.StringAttr(attributes["sym_name"]).value == "main":
            return operation
    raise ProgramError("the StableHLO has no function 'main'")


def _is_shardy(module: Any) -> bool:
    """Whether shardings are in Shardy's words. Without any it makes no difference."""
    text = module.operation.get_asm(large_elements_limit=4)
    return "sdy." in text or "mhlo.sharding" not in text


def _lowered(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    donate: Sequence[int | str],
    static: Sequence[int | str],
) -> Any:
    if type(function).__module__.startswith("equinox"):
        # Its own jit takes what stands for an array as static, so it is traced from outside.
        donate = _donated_inside(function, args, kwargs)
        function, args, kwargs = _jitted(function, args, kwargs, donate, ())
    elif not hasattr(function, "lower"):
        function, args, kwargs = _jitted(function, args, kwargs, donate, static)
    lowered: Any = function.lower(*args, **kwargs)  # type: ignore[attr-defined]
    # Equinox and Flax wrap jax's own once more.
    while not hasattr(lowered, "compiler_ir") and hasattr(lowered, "lowered"):
        lowered = lowered.lowered
    if not hasattr(lowered, "compiler_ir"):
        raise ProgramError(
            f"{function!r} has a method 'lower', which gives no program of jax: {type(lowered)}"
        )
    return lowered


def _jitted(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    donate: Sequence[int | str],
    static: Sequence[int | str],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """``function`` jitted, and the arguments that are left for it: what is no array is built in."""
    fixed = {i for i in static if isinstance(i, int)} | {name for name in static if isinstance(name, str)}
    options = _numbered("donate", donate) | _numbered("static", static)
    leaves, tree = jax.tree.flatten((args, kwargs))
    places, _ = jax.tree_util.tree_flatten_with_path((args, kwargs))
    dynamic = [
        _is_dynamic(leaf) or _argument(path) in fixed for leaf, (path, _) in zip(leaves, places, strict=True)
    ]
    if all(dynamic):
        return jax.jit(function, **options), args, kwargs

    # Structure and names stay: None in a tree is no leaf.
    args, kwargs = jax.tree.unflatten(
        tree, [leaf if keep else None for leaf, keep in zip(leaves, dynamic, strict=True)]
    )

    @functools.wraps(function)
    def rest_built_in(*args: Any, **kwargs: Any) -> Any:
        given = iter(jax.tree.leaves((args, kwargs)))
        whole = [next(given) if keep else leaf for leaf, keep in zip(leaves, dynamic, strict=True)]
        args, kwargs = jax.tree.unflatten(tree, whole)
        result = function(*args, **kwargs)
        # What is no array goes out as it came in: nothing to compile.
        return jax.tree.map(lambda leaf: leaf if _is_dynamic(leaf) else None, result)

    return jax.jit(rest_built_in, **options), args, kwargs


def _donated_inside(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
    """The positional arguments that a jit inside ``function`` donates, every leaf of them."""
    jitted, dynamic, named = _jitted(function, args, kwargs, (), ())
    jaxpr = jitted.trace(*dynamic, **named).jaxpr.jaxpr  # type: ignore[attr-defined]
    donated: set[int] = set()
    for equation in jaxpr.eqns:
        flags = equation.params.get("donated_invars", ())
        donated |= {id(variable) for variable, flag in zip(equation.invars, flags, strict=False) if flag}
    at = 0
    whole = []
    for position, arg in enumerate(dynamic):
        variables = jaxpr.invars[at : at + len(jax.tree.leaves(arg))]
        at += len(variables)
        if variables and all(id(variable) in donated for variable in variables):
            whole.append(position)
    return whole


def _is_dynamic(leaf: Any) -> bool:
    return is_array(leaf) or isinstance(leaf, int | float | complex)


def _argument(path: Any) -> int | str:
    return path[1].idx if path[0].idx == 0 else path[1].key  # type: ignore[no-any-return]


def _numbered(what: str, which: Sequence[int | str]) -> dict[str, Any]:
    numbers = tuple(i for i in which if isinstance(i, int))
    names = tuple(i for i in which if isinstance(i, str))
    return {f"{what}_argnums": numbers or None, f"{what}_argnames": names or None}
