"""Every name of jax and jaxlib that is not public and that xlamem uses. Nothing else touches one.

Written for jax 0.10; where a name is gone, the error says which jax is there and which are known to work.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import jax

from xlamem.errors import CompilerError

#: The oldest jax that has all of these, and the newest that was tried.
OLDEST = (0, 8, 0)
NEWEST = (0, 10, 2)

#: Part of the key under which jax keeps traces, and of no effect outside Google: set while tracing for another
#: backend, so that those traces are not taken for the user's own.
_TRACE_MARKS = {"tpu": 7_001, "gpu": 7_002, "cpu": 7_003}


def check_version() -> None:
    """Refuse a jax that is too old.

    Raises:
        CompilerError: it is.
    """
    if jax.__version_info__[:3] < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise CompilerError(
            f"compiling needs jax {oldest} or newer, and this is {jax.__version__}: pip install -U jax"
        )


@contextlib.contextmanager
def _moved() -> Iterator[None]:
    try:
        yield
    except (ImportError, AttributeError, TypeError) as error:
        newest = ".".join(map(str, NEWEST))
        raise CompilerError(
            f"jax {jax.__version__} has changed inside ({error}); xlamem is known to work with "
            f"{'.'.join(map(str, OLDEST))} to {newest}"
        ) from error


@contextlib.contextmanager
def quiet_plugins() -> Iterator[None]:
    """Keep quiet about a CUDA plugin that does not load, where there is no GPU: it is here for its compiler only.

    jax starts its backends when something is traced, and tells of that with a page of traceback. Other records pass.
    """
    if os.path.exists("/dev/nvidiactl"):
        yield
        return

    def wanted(record: logging.LogRecord) -> bool:
        return not (str(record.msg).startswith("Jax plugin configuration error") and "cuda" in _whole(record))

    logger = logging.getLogger("jax._src.xla_bridge")
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


def _whole(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return f"{record.msg} {record.args} {error}".lower()


@contextlib.contextmanager
def backend_name(name: str) -> Iterator[None]:
    """Make ``jax.default_backend()`` answer ``name``, and keep what is traced meanwhile apart.

    Arrays are still computed where they would be.
    """
    with _moved():
        from jax._src import config, xla_bridge

        mark = config.jax_xla_profile_version(_TRACE_MARKS[name])
    real = xla_bridge.default_backend

    def default_backend() -> str:
        return name

    patched = [(owner, owner.default_backend) for owner in (jax, xla_bridge)]
    with mark:
        try:
            for owner, old in patched:
                if old is real:
                    setattr(owner, "default_backend", default_backend)  # noqa: B010 - mypy knows it as a function
            yield
        finally:
            for owner, old in patched:
                setattr(owner, "default_backend", old)  # noqa: B010


@contextlib.contextmanager
def lowering_for(platform: str) -> Iterator[None]:
    """Make every ``.lower()`` lower for ``platform``: wrappers of jit, such as Equinox', do not pass it on.

    Layouts that the user asks for are kept. jax drops those that the devices of this process have anyway, and
    row-major, which every CPU has, is just what one may want to force on a TPU.
    """
    from jax.stages import Traced

    with _moved():
        pxla: Any = import_module("jax._src.interpreters.pxla")
        is_default_layout = pxla.is_default_layout
    real = Traced.lower

    def lower(self: Any, *, lowering_platforms: Any = None, **others: Any) -> Any:
        return real(self, lowering_platforms=lowering_platforms or (platform,), **others)

    setattr(Traced, "lower", lower)  # noqa: B010
    pxla.is_default_layout = lambda layout, sharding, aval: layout is None
    try:
        yield
    finally:
        setattr(Traced, "lower", real)  # noqa: B010
        pxla.is_default_layout = is_default_layout


def bytecode(module: Any) -> bytes:
    """An MLIR module as bytes, with its locations: they become op_name and source line."""
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()


@contextlib.contextmanager
def parsed(program: bytes | str) -> Iterator[Any]:
    """The MLIR module in ``program``, text or bytecode, inside the context that it needs."""
    with _moved():
        from jax._src.interpreters import mlir
        from jaxlib.mlir import ir
    with mlir.make_ir_context():
        yield ir.Module.parse(program)


def mlir_of_hlo(program: bytes | str) -> tuple[str, str]:
    """StableHLO text of an HLO module, and the line that its own text begins with.

    ``program`` is HLO text, or a serialized HloModuleProto.

    Raises:
        CompilerError: it does not parse, or the names have moved.
    """
    with _moved():
        hlo = import_module("jaxlib._hlo")
        from_text = hlo.hlo_module_from_text
        to_mlir = import_module("jax._src.lib")._jax.mlir.xla_computation_to_mlir_module
    if isinstance(program, str):
        program = from_text(program).as_serialized_hlo_module_proto()
    header = hlo.HloModule.from_serialized_hlo_module_proto(program).to_string().partition("\n")[0]
    text = to_mlir(hlo.XlaComputation(program))
    return text if isinstance(text, str) else text.decode(), header


def compile_module(
    module: Any,
    devices: Sequence[Any],
    options: Mapping[str, str | bool],
    *,
    shardy: bool,
    propagate_to_inputs: Sequence[bool],
    propagate_to_outputs: Sequence[bool],
) -> Any:
    """Compile an MLIR module for ``devices``, the way jit does; the executable is returned.

    Devices that are not there have a client that only compiles.
    """
    with _moved():
        made = import_module("jax._src.compiler").get_compile_options(
            num_replicas=1,
            num_partitions=len(devices),
            device_assignment=[[device.id for device in devices]],
            env_options_overrides=dict(options),
        )
        build = made.executable_build_options
        build.use_shardy_partitioner = shardy
        if len(devices) > 1:
            build.allow_spmd_sharding_propagation_to_parameters = list(propagate_to_inputs)
            build.allow_spmd_sharding_propagation_to_output = list(propagate_to_outputs)
        client = devices[0].client
        compile_only = type(client).__name__ == "CompileOnlyPyClient"
        run = client.compile if compile_only else client.compile_and_load
        executable_devices = import_module("jax._src.lib").xla_client.DeviceList(tuple(devices))
    return run(module, executable_devices=executable_devices, compile_options=made)


def cost_analysis(executable: Any) -> dict[str, float]:
    """What the compiler counts in a compiled program: "flops", "bytes accessed"; empty where it does not count."""
    try:
        found = executable.cost_analysis()
    except Exception:
        # A GPU's compiler does not say, when there is none; XLA's own count needs only a client of any kind.
        try:
            count = import_module("jax._src.lib")._jax.hlo_module_cost_analysis
            found = count(jax.devices("cpu")[0].client, executable.hlo_modules()[0])
        except Exception:
            return {}
    facts = found[0] if isinstance(found, list) and found else found
    return facts if isinstance(facts, dict) else {}
