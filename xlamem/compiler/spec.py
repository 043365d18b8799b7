"""What people type about a program: where the function is, its inputs, and how they are spread over devices.

Plain data and grammar; nothing here imports jax, as the command line reads it before it starts a compile.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from math import prod
from typing import Any

from xlamem.errors import ProgramError

__all__ = ["ArraySpec", "FunctionSpec", "parse_axes", "parse_mesh", "parse_setting", "parse_value"]

_ARRAY = re.compile(r"\s*([a-z]+\d*[a-z\d]*)\[([\d,\s]*)\]\s*", re.ASCII)
_DIGITS = 18  # of the number of an array's elements: XLA counts them in 64 bits

#: XLA's short names that are not numpy's with "float" and "int" written out.
_DTYPES = {
    "pred": "bool_",
    "bool": "bool_",
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
}
_WIDTHS = {"f": "float", "s": "int", "u": "uint", "c": "complex", "i": "int"}


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function of the user's, to be loaded and traced in the child.

    ``function`` and ``inputs`` are "file.py:name" or "package.module:name". ``arguments`` and ``keywords`` are
    texts such as "f32[8,128]"; ``settings`` go to the inputs function. ``mesh`` and ``shard`` are as typed.
    """

    function: str
    inputs: str | None = None
    arguments: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    mesh: str | None = None
    shard: tuple[str, ...] = ()
    donate: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    #: Make the inputs for real instead of only their shapes.
    real_inputs: bool = False
    #: Let ``jax.default_backend()`` answer for the target while tracing.
    as_target: bool = True


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Shape and element type of an array: what "f32[8,128]" says."""

    dtype: str
    shape: tuple[int, ...]


def parse_value(text: str) -> Any:
    """An input: "f32[8,128]" is an :class:`ArraySpec`, everything else a Python literal, or a plain string.

    Raises:
        ProgramError: it looks like an array and is none.
    """
    if "[" in text and not text.lstrip().startswith(("[", "(", "{", "'", '"')):
        return _array(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _array(text: str) -> ArraySpec:
    match = _ARRAY.fullmatch(text)
    if match is None:
        raise ProgramError(
            f"{text!r} is no array; write element type and shape, like f32[8,128] or bf16[1024]"
        )
    name, axes = match.groups()
    try:
        shape = tuple(int(axis) for axis in axes.split(",")) if axes.strip() else ()
    except ValueError:
        raise ProgramError(f"{text!r}: the shape {axes!r} is not numbers with commas between") from None
    if prod(shape) >= 10**_DIGITS:
        raise ProgramError(f"{text!r} has more elements than can be counted")
    return ArraySpec(_dtype(name), shape)


def _dtype(name: str) -> str:
    if name in _DTYPES:
        return _DTYPES[name]
    short = re.fullmatch(r"([fsuci])(\d+)", name)
    return f"{_WIDTHS[short[1]]}{short[2]}" if short is not None else name


def parse_setting(text: str) -> tuple[str, str]:
    """ "batch=32" as its two sides.

    Raises:
        ProgramError: there is no name, or no "=".
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ProgramError(f"{text!r} is not of the form name=value")
    return name.strip(), value.strip()


def parse_mesh(text: str) -> dict[str, int]:
    """ "data=4,model=2" as the axes of a mesh and their lengths.

    Raises:
        ProgramError: it is not of that form.
    """
    mesh = {}
    for part in text.split(","):
        name, value = parse_setting(part)
        if not value.isdecimal() or int(value) == 0:
            raise ProgramError(f"{text!r}: the length of mesh axis {name!r} must be a number, not {value!r}")
        mesh[name] = int(value)
    return mesh


def parse_axes(text: str) -> tuple[str, tuple[str | tuple[str, ...] | None, ...]]:
    """ "args[1]=data,None" as the inputs meant and the mesh axes of their dimensions; "a+b" is both.

    Raises:
        ProgramError: it is not of that form.
    """
    where, equals, axes = text.rpartition("=")
    if not equals or not where.strip():
        raise ProgramError(f"{text!r} is not of the form input=axis,axis: args[1]=data, or params=None,model")
    dims: list[str | tuple[str, ...] | None] = []
    for part in axes.split(",") if axes.strip() else []:
        name = part.strip()
        if name in ("", "None", "-"):
            dims.append(None)
        else:
            dims.append(tuple(name.split("+")) if "+" in name else name)
    return where.strip(), tuple(dims)
