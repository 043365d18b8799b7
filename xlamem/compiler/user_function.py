"""Loading and tracing a function of the user's that the command line named. Runs in the child only."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from xlamem.compiler.program import Program
from xlamem.compiler.spec import FunctionSpec, parse_mesh, parse_value
from xlamem.compiler.target import CompileTarget, Platform
from xlamem.errors import ProgramError, UserCodeError, XlamemError

__all__ = ["trace", "user_code"]

#: Parts of a path that tell code of the machinery from the user's own.
_MACHINERY = (
    *(f"{os.sep}{name}{os.sep}" for name in ("jax", "jaxlib", "importlib")),
    f"xlamem{os.sep}compiler{os.sep}",
    "<frozen ",
)


def trace(spec: FunctionSpec, target: CompileTarget, platform: Platform) -> Program:
    """Load the function and its inputs, and lower it for ``platform``.

    Raises:
        ProgramError: something that was named is not there, or inputs do not match.
        UserCodeError: the user's own code raised.
    """
    from contextlib import nullcontext

    from xlamem.compiler import jax_private
    from xlamem.compiler.lowering import BACKENDS, lower

    # Also while modules are loaded: some ask on the way in.
    named = jax_private.backend_name(BACKENDS[platform]) if spec.as_target else nullcontext()
    with named, _slice_hinted(target):
        function = _load(spec.function)
        args, kwargs = _inputs(spec, function)
        with user_code(spec.function):
            return lower(
                function,
                args,
                kwargs,
                platform,
                donate=[_position(text) for text in spec.donate],
                static=[_position(text) for text in spec.static],
                mesh=parse_mesh(spec.mesh) if spec.mesh else None,
                shard=spec.shard,
                as_target=spec.as_target,
            )


#: What jax.make_mesh and mesh_utils say when there are too few devices.
_TOO_FEW = re.compile(r"Number of devices \d+ must [^\n]*product of mesh_shape \(([\d, ]+)\)")


@contextmanager
def _slice_hinted(target: CompileTarget) -> Iterator[None]:
    """Say in an error of the user's, about a mesh of more devices than the target has, to name a slice."""
    try:
        yield
    except UserCodeError as error:
        mesh = _TOO_FEW.search(str(error))
        if mesh is None or target.platform is None:
            raise
        count = prod(int(axis) for axis in mesh[1].split(",") if axis.strip())
        has = f"{target} has {target.devices} device{'s' if target.devices > 1 else ''}"
        hint = f"({has}, and the mesh needs {count}: name a slice that has them, --target {target.with_devices(count)})"
        raise UserCodeError(f"{error}\n{hint}", error.exception, error.traceback) from error


def _position(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _inputs(spec: FunctionSpec, function: Callable[..., Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from xlamem.compiler.inputs import abstract_call, split_arguments

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    settings = {name: parse_value(value) for name, value in spec.settings}
    if spec.inputs is not None:
        make = _load(spec.inputs)
        with user_code(spec.inputs, _HINT if not spec.real_inputs else None):
            result = make(**settings) if spec.real_inputs else abstract_call(make, settings)
        args, kwargs = split_arguments(function, result)
    args += tuple(parse_value(text) for text in spec.arguments)
    kwargs |= {name: parse_value(text) for name, text in spec.keywords}
    return args, kwargs


_HINT = "inputs are made as shapes only, under jax.eval_shape; --real-inputs makes them for real"


def _load(place: str) -> Callable[..., Any]:
    """The function at "file.py:name" or "package.module:name"."""
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise ProgramError(f"{place!r} names no function; write file.py:function or package.module:function")
    module = _load_file(where) if where.endswith(".py") or os.sep in where else _load_module(where)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ProgramError(f"{where} has no {name!r}{_similar(name, module)}") from None
    if not callable(found):
        raise ProgramError(f"{place} is no function but a {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _similar(name: str, module: Any) -> str:
    from difflib import get_close_matches
    from types import FunctionType

    functions = [
        n for n, value in vars(module).items() if isinstance(value, FunctionType) or hasattr(value, "lower")
    ]
    functions = [n for n in functions if not n.startswith("_")]
    close = get_close_matches(name, functions, n=3) or functions[:6]
    return f"; there is {', '.join(close)}" if close else ""


def _load_file(path: str) -> Any:
    """The module in a file, as if it were run as a script: its folder is on the path."""
    absolute = os.path.abspath(path)
    if not os.path.isfile(absolute):
        raise ProgramError(f"{path}: no such file")
    name = os.path.splitext(os.path.basename(absolute))[0]
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == absolute:
        return loaded
    folder = os.path.dirname(absolute)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if loaded is not None or not name.isidentifier():
        name = f"_xlamem_{abs(hash(absolute)):x}"  # a name that is taken, such as "jax"
    spec = importlib.util.spec_from_file_location(name, absolute)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with user_code(path):
        spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise ProgramError(f"no module is called {name}; a file is written with its ending: train.py:step")
    with user_code(name):
        return importlib.import_module(name)


@contextmanager
def user_code(place: str, hint: str | None = None) -> Iterator[None]:
    """Turn what the user's code raises into an error with their frames only.

    Raises:
        UserCodeError: it raised.
    """
    try:
        yield
    except XlamemError:
        raise
    except (Exception, SystemExit) as error:
        raise _as_theirs(error, place, hint) from error


def _as_theirs(error: BaseException, place: str, hint: str | None) -> UserCodeError:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_machinery(f.filename)]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        line = linecache.getline(error.filename, error.lineno).strip()
        frames = [*frames, traceback.FrameSummary(error.filename, error.lineno, "<module>", line=line)]
    # Where the user's own code ends and a library's begins is what they look for.
    own = [frame for frame in frames if f"{os.sep}site-packages{os.sep}" not in frame.filename]
    theirs = own or frames
    last = theirs[-1] if theirs else None
    if isinstance(error, SystemExit):
        what = f"SystemExit: {error.code}"
    else:
        what = (
            "".join(traceback.format_exception_only(error)).strip().split("\n")[-1]
            if isinstance(error, SyntaxError)
            else f"{type(error).__name__}: {error}"
        )
    where = f"{_short(last.filename)}:{last.lineno}, in {last.name}" if last is not None else place
    lines = [f"{where}: {what.strip()}"]
    shown = frames[-8:]
    if shown:
        lines += ["while compiling " + place + ", in your code:"]
        for frame in shown:
            lines.append(f"  {_short(frame.filename)}:{frame.lineno}, in {frame.name}")
            if frame.line:
                lines.append(f"    {frame.line}")
    else:
        lines += [f"while compiling {place}"]
    if hint and type(error).__module__.startswith("jax"):
        lines.append(f"({hint})")
    return UserCodeError("\n".join(lines), type(error).__name__, "".join(traceback.format_list(frames)))


def _is_machinery(filename: str) -> bool:
    return any(part in filename for part in _MACHINERY)


def _short(filename: str) -> str:
    try:
        relative = os.path.relpath(filename)
    except ValueError:
        return filename
    return filename if relative.startswith("..") else relative
