"""A function's inputs: only their shapes, and spread over a mesh. Large weights are never made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from xlamem.compiler.spec import ArraySpec, parse_axes
from xlamem.errors import ProgramError

__all__ = ["abstract", "abstract_call", "is_array", "shape_struct", "sharded", "split_arguments"]

#: jax's own, which has no types in some versions.
shape_struct: Any = jax.ShapeDtypeStruct


def is_array(leaf: Any) -> bool:
    """Whether ``leaf`` is an array, or stands for one."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def abstract(leaf: Any) -> Any:
    """``leaf`` without its values: arrays become what stands for them; anything else is left as it is.

    A sharding over several devices is kept, and a layout. One device says only where the values are now.
    """
    if isinstance(leaf, ArraySpec):
        try:
            return shape_struct(leaf.shape, jax.numpy.dtype(leaf.dtype))
        except TypeError:
            raise ProgramError(f"no element type is called {leaf.dtype!r}; write f32, bf16, s8 ...") from None
    if not is_array(leaf):
        return leaf
    if isinstance(leaf, np.ndarray | np.generic):
        leaf = jax.typeof(leaf)
    return shape_struct(
        leaf.shape,
        leaf.dtype,
        sharding=_kept_sharding(leaf),
        weak_type=bool(getattr(leaf, "weak_type", False)),
    )


def _kept_sharding(leaf: Any) -> Any:
    """The part of a leaf's sharding that is a wish: over several devices, or with a layout."""
    sharding = getattr(leaf, "sharding", None)
    if not isinstance(sharding, jax.sharding.Sharding):
        return None
    # An array has the layout of this process' devices; only a shape can ask for one.
    wished = None if isinstance(leaf, jax.Array) else getattr(leaf, "format", None)
    if getattr(wished, "layout", None) is not None:
        return wished
    return sharding if _devices(sharding) > 1 else None


def _devices(sharding: Any) -> int:
    try:
        return int(sharding.num_devices)
    except Exception:  # a mesh without devices has another way to tell
        return int(getattr(getattr(sharding, "mesh", None), "size", 1))


def abstract_call(function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """What ``function(**settings)`` returns, with arrays as shapes only: nothing large is made.

    What is not an array (a number, a string, a function, what is abstract already) comes back as it is.
    """
    kept: list[Any] = []
    tree: Any = None

    def traced() -> list[Any]:
        nonlocal kept, tree
        leaves, tree = jax.tree.flatten(function(**settings))
        kept = [None if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
        return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

    shapes = iter(jax.eval_shape(traced))
    return jax.tree.unflatten(tree, [next(shapes) if leaf is None else leaf for leaf in kept])


def split_arguments(function: Callable[..., Any], result: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments in what an inputs function returned.

    A tuple is the arguments; (args, kwargs) both of them, where ``function`` can be called so; anything else
    is the only argument.
    """
    if type(result) is not tuple:
        return (result,), {}
    if len(result) == 2 and type(result[0]) is tuple and type(result[1]) is dict:
        args, kwargs = result
        if all(isinstance(name, str) for name in kwargs) and _accepts(function, args, kwargs):
            return args, kwargs
    return result, {}


def _accepts(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # it has no signature that could be asked
        return True
    return True


def sharded(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mesh: Any,
    shard: Sequence[str],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with shardings over ``mesh``: as ``shard`` says, one a line, the last that matches; the rest
    are the same on every device. What has a sharding over several devices keeps it.

    Raises:
        ProgramError: a line names no input, or more axes than an input has.
    """
    from jax.sharding import NamedSharding, PartitionSpec

    partition: Any = PartitionSpec
    rules = [(text, *parse_axes(text)) for text in shard]
    used = set()

    def one(path: Any, leaf: Any) -> Any:
        if not is_array(leaf) or getattr(leaf, "sharding", None) is not None:
            return leaf
        spec = partition()
        names = _names(function, path)
        for text, where, axes in rules:
            exact = where in names
            if exact or any(_covers(where, name) for name in names):
                used.add(text)
                if len(axes) <= len(leaf.shape):
                    spec = partition(*axes)
                elif exact:
                    raise ProgramError(f"--shard {text}: {names[0]} has {len(leaf.shape)} axes, {leaf.shape}")
        try:
            sharding = NamedSharding(mesh, spec)
            sharding.shard_shape(tuple(leaf.shape))
        except ValueError as error:
            raise ProgramError(
                f"{names[0]} of shape {leaf.shape} cannot be spread as {spec}: {error}"
            ) from None
        return shape_struct(
            leaf.shape, leaf.dtype, sharding=sharding, weak_type=bool(getattr(leaf, "weak_type", False))
        )

    args, kwargs = jax.tree_util.tree_map_with_path(one, (args, kwargs))
    for text, where, _ in rules:
        if text not in used:
            raise ProgramError(
                f"--shard {text}: no input is called {where}; {_inputs(function, args, kwargs)}"
            )
    return args, kwargs


def _names(function: Callable[..., Any], path: Any) -> list[str]:
    """What an input can be called: "args[1]['image']" and "batch['image']"."""
    kind, first, *rest = path
    tail = jax.tree_util.keystr(tuple(rest))
    if kind.idx == 1:
        return [f"{first.key}{tail}", f"kwargs['{first.key}']{tail}"]
    names = [f"args[{first.idx}]{tail}"]
    try:
        parameters = list(inspect.signature(function).parameters.values())
        if parameters[first.idx].kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            names.append(f"{parameters[first.idx].name}{tail}")
    except (TypeError, ValueError, IndexError):
        pass
    return names


def _covers(where: str, name: str) -> bool:
    pattern = re.escape(where).replace(r"\*", ".*")
    return re.match(rf"{pattern}(?=$|[.\[])", name) is not None


def _inputs(function: Callable[..., Any], args: Any, kwargs: Any) -> str:
    paths = jax.tree_util.tree_flatten_with_path((args, kwargs))[0]
    shown = [_names(function, path)[-1] for path, _ in paths[:8]]
    return f"there are {', '.join(shown)}{' ...' if len(paths) > 8 else ''}"
