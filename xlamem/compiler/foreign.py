"""Programs that are not Python functions: a dump of XLA, HLO, StableHLO, an artifact of jax.export.

Whoever wrote them, JAX, PyTorch/XLA or TensorFlow, and for whatever chip: the program before optimization is the
same for all, but for the layouts of its inputs, which are taken out here, so that the target's own are used.
"""

from __future__ import annotations

import os
import re
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlamem.errors import MissingExtraError, NotReadableError, ProgramError, XlamemError

if TYPE_CHECKING:
    from xlamem.compiler.program import Program
    from xlamem.compiler.target import Platform

__all__ = ["is_foreign", "load"]

_SUFFIXES = (
    ".mlir",
    ".stablehlo",
    ".mlirbc",
    ".bc",
    ".hlo.pb",
    ".hlo",
    ".txt",
    ".pb",
    ".jax_export",
    ".export",
)

#: What an HLO module says about layouts of inputs and results, for the chip that it was compiled for.
_FOREIGN_LAYOUTS = (
    "mhlo.xla_entry_computation_parameter_layouts",
    "mhlo.xla_entry_computation_parameter_tiles",
    "mhlo.xla_entry_computation_result_layout",
    "mhlo.xla_entry_computation_result_tiles",
    "mhlo.cross_program_prefetches",
)

_PARTITIONS = re.compile(r"^HloModule [^\n]*?\bnum_partitions=(\d+)")
_DONORS = re.compile(r"\((\d+), \{\}\)")
_MESH = re.compile(r"#sdy\.mesh<\[([^\]]*)\]>|sdy\.mesh @\w+ = <\[([^\]]*)\]>")
_DEVICES = re.compile(r"devices=\[([\d,]+)\]")
_MLIR_BYTECODE = b"ML\xefR"
#: Behind comments, locations and aliases comes the module.
_MLIR_TEXT = re.compile(r"(?:\s+|//[^\n]*|[#!][^\n]*)*+(?:\"?builtin\.)?module\b[^\n]*\{")

#: What is looked for in a file, for people.
_FORMS = (
    "an artifact of jax.export, StableHLO (MLIR bytecode, or text that begins with 'module'), and HLO (text that "
    "begins with 'HloModule', an HloProto or an HloModuleProto)"
)


def is_foreign(source: str) -> bool:
    """Whether ``source`` names a program on disk and not a function: by its ending, or by what the file holds.

    Raises:
        ProgramError: it is a file that holds neither, or not there and no function's name either.
        NotReadableError: it cannot be opened.
    """
    if os.path.isdir(source) or source.endswith(_SUFFIXES):
        return True
    if source.endswith(".py") or (":" in source and not os.path.isfile(source)):
        return False
    if not os.path.exists(source):
        raise ProgramError(
            f"{source}: no such file or folder, and it names no function; "
            "write file.py:function or package.module:function"
        )
    if not os.path.isfile(source):
        raise ProgramError(f"{source}: neither a file nor a folder")
    try:
        data = Path(source).read_bytes()
    except OSError as error:
        raise NotReadableError(f"{source}: {error.strerror or error}") from None
    if _is_program(data):
        return True
    raise ProgramError(
        f"{source}: no program was found in this file; looked for {_FORMS}. "
        "A function is written file.py:function or package.module:function"
    )


def _is_program(data: bytes) -> bool:
    """Whether a file's content begins like one of the forms that :func:`load` reads."""
    if data.startswith(_MLIR_BYTECODE) or _is_hlo_proto(data) or _is_export(data):
        return True
    text = _as_text(data)
    return text is not None and (
        _MLIR_TEXT.match(text) is not None or re.search(r"^HloModule ", text, re.MULTILINE) is not None
    )


def _is_hlo_proto(data: bytes) -> bool:
    """HloModuleProto {1 name, 2 name of its entry}, or HloProto {1 HloModuleProto}. Stricter than the ending is."""
    if not _is_hlo(data):
        return False
    try:
        _, inner = _varint(data, 1)
        return _begins_module(data, 0) or _begins_module(data, inner)
    except ProgramError:
        return False


def _begins_module(data: bytes, at: int) -> bool:
    if data[at : at + 1] != b"\x0a":
        return False
    length, at = _varint(data, at + 1)
    name = data[at : at + length]
    return (
        bool(name) and name.isascii() and name.decode().isprintable() and data[at + length :][:1] == b"\x12"
    )


def _is_export(data: bytes) -> bool:
    """A flatbuffer, that is a table which tells where its own description is, around MLIR bytecode."""
    if len(data) < 16 or _MLIR_BYTECODE not in data:
        return False
    root: int = struct.unpack_from("<I", data)[0]
    if not 4 <= root <= len(data) - 4:
        return False
    described: int = root - struct.unpack_from("<i", data, root)[0]
    if not 4 <= described <= len(data) - 4:
        return False
    size: int
    table: int
    size, table = struct.unpack_from("<HH", data, described)
    return 4 <= size <= 256 and size % 2 == 0 and 4 <= table <= len(data) - root


def load(path: str, platform: Platform, module: str | None = None) -> Program:
    """The program in the file or dump folder ``path``. ``module`` picks one of a folder by name.

    Raises:
        NotReadableError: it cannot be opened.
        ProgramError: it is none of the forms, or holds none or several programs.
    """
    file = _program_of_dump(Path(path), module) if os.path.isdir(path) else Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise NotReadableError(f"{file}: {error.strerror or error}") from None
    if not data:
        raise ProgramError(f"{file}: the file is empty")
    try:
        return _load(file, data, platform)
    except XlamemError:
        raise
    except Exception as error:  # each parser has exceptions of its own
        raise ProgramError(f"{file}: not a program that can be compiled: {_first_lines(error)}") from None


def _program_of_dump(folder: Path, module: str | None) -> Path:
    """The file of a dump that holds the program as it was before optimization."""
    names = sorted(os.listdir(folder))
    for ending in (".before_optimizations.hlo.pb", ".before_optimizations.txt"):
        found = [name for name in names if name.endswith(ending)]
        chosen = [name for name in found if module is None or module in name]
        if module is not None and found and not chosen:
            raise ProgramError(f"{folder}: no program {module!r}; there are {', '.join(found)}")
        if len(chosen) == 1:
            return folder / chosen[0]
        if chosen:
            listed = ", ".join(name.removesuffix(ending) for name in chosen[:8])
            raise ProgramError(f"{folder}: {len(chosen)} programs; name one with --module: {listed}")
    for name in names:
        if name == "module.mlir" or name.endswith(".mlir"):
            return folder / name
    raise ProgramError(
        f"{folder}: no program in this folder: neither *.before_optimizations.hlo.pb nor .txt nor .mlir"
    )


def _load(file: Path, data: bytes, platform: Platform) -> Program:
    from dataclasses import replace

    note = f"compiled from {file.name}"
    if data.startswith(_MLIR_BYTECODE):
        program = _from_mlir(data, platform)
    elif file.name.endswith(".pb") and not _is_hlo(data):
        raise ProgramError(f"{file}: neither an HloProto nor an HloModuleProto")
    elif file.name.endswith(".pb") or _is_hlo_proto(data):
        program = _from_hlo(_module_proto(data), platform, _partitions_of(file, None))
    elif (text := _as_text(data)) is not None:
        if re.search(r"^HloModule ", text, re.MULTILINE):
            program = _from_hlo(text, platform, _partitions_of(file, text))
        else:
            program = _from_mlir(text, platform)
    else:
        program = _from_export(data, platform)
    return replace(program, notes=(note, *program.notes))


def _as_text(data: bytes) -> str | None:
    if b"\0" in data[:4096]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _from_mlir(code: bytes | str, platform: Platform) -> Program:
    from xlamem.compiler import jax_private
    from xlamem.compiler.lowering import program_of

    with jax_private.parsed(code) as module:
        return program_of(module, platform)


def _from_hlo(program: bytes | str, platform: Platform, partitions: int | None) -> Program:
    from xlamem.compiler import jax_private
    from xlamem.compiler.lowering import program_of

    text, header = jax_private.mlir_of_hlo(program)
    with jax_private.parsed(text) as module:
        _forget_layouts(module)
        _donate(module, [int(number) for number in _DONORS.findall(_donors(header))])
        _set_partitions(module, partitions or _spread(text))
        return program_of(module, platform)


def _forget_layouts(module: Any) -> None:
    attributes = module.operation.attributes
    for name in _FOREIGN_LAYOUTS:
        if name in attributes:
            del attributes[name]


def _donors(header: str) -> str:
    """ "(0, {}), (1, {})" of a header's ``buffer_donor={ (0, {}), (1, {}) }``: donated, to whatever result."""
    start = header.find("buffer_donor={")
    return header[start : header.find(") }", start) + 1] if start >= 0 else ""


def _donate(module: Any, parameters: list[int]) -> None:
    """Mark parameters as donated: on its way from HLO to MLIR that is lost."""
    from jaxlib.mlir import ir

    from xlamem.compiler.lowering import main_function

    main = main_function(module)
    with module.context:
        attributes = list(main.attributes["arg_attrs"]) if "arg_attrs" in main.attributes else []
        for number in parameters:
            if number < len(attributes):
                one = {named.name: named.attr for named in attributes[number]}
                attributes[number] = ir.DictAttr.get(one | {"jax.buffer_donor": ir.BoolAttr.get(True)})
        if parameters and attributes:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def _set_partitions(module: Any, devices: int) -> None:
    from jaxlib.mlir import ir

    attributes = module.operation.attributes
    with module.context:
        i32 = ir.IntegerType.get_signless(32)
        attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, devices)
        attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)


def _spread(text: str) -> int:
    """Over how many devices a program is spread, by its meshes and shardings."""
    most = 1
    for mesh in _MESH.finditer(text):
        count = 1
        for length in re.findall(r"=\s*(\d+)", mesh[1] or mesh[2] or ""):
            count *= int(length)
        most = max(most, count)
    for sharding in _DEVICES.finditer(text):
        count = 1
        for length in sharding[1].split(","):
            count *= int(length)
        most = max(most, count)
    return most


def _partitions_of(file: Path, text: str | None) -> int | None:
    """``num_partitions`` of the module's own text, or of the text beside a proto."""
    if text is None:
        beside = file.with_name(file.name.removesuffix(".hlo.pb") + ".txt")
        if not file.name.endswith(".hlo.pb") or not beside.is_file():
            return None
        with open(beside, encoding="utf-8", errors="replace") as opened:
            text = opened.readline()
    match = _PARTITIONS.search(text)
    return int(match[1]) if match is not None else None


def _is_hlo(data: bytes) -> bool:
    """HloProto {1 hlo_module {1 name}} or HloModuleProto {1 name}: both begin with a field 1 of bytes."""
    return data[:1] == b"\x0a"


def _module_proto(data: bytes) -> bytes:
    """The HloModuleProto in ``data``, which is one itself or an HloProto around one."""
    length, at = _varint(data, 1)
    inner = data[at : at + length]
    # A module begins with its name; a name does not begin with a field that has one.
    if inner[:1] == b"\x0a" and at + length <= len(data):
        return inner
    return data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ProgramError("it is cut off")


def _from_export(data: bytes, platform: Platform) -> Program:
    import jax
    from jax import export

    from xlamem.compiler.inputs import shape_struct
    from xlamem.compiler.lowering import lower

    if find_spec("flatbuffers") is None:
        raise MissingExtraError(
            "reading an artifact of jax.export needs flatbuffers: pip install flatbuffers"
        )
    try:
        exported = export.deserialize(bytearray(data))
    except Exception as error:
        raise ProgramError(
            f"neither HLO, StableHLO nor an artifact of jax.export ({_first_lines(error)})"
        ) from None
    symbolic = [str(aval) for aval in exported.in_avals if not jax.core.is_constant_shape(aval.shape)]
    if symbolic:
        raise ProgramError(
            f"it was exported with symbolic shapes, which have no size: {', '.join(symbolic[:3])}"
        )
    if len(exported.platforms) == 1:
        return _from_mlir(exported.mlir_module(), platform)
    args, kwargs = jax.tree.unflatten(exported.in_tree, exported.in_avals)
    args, kwargs = jax.tree.map(lambda aval: shape_struct(aval.shape, aval.dtype), (args, kwargs))
    return lower(jax.jit(exported.call), args, kwargs, platform)


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:2])[:400] or type(error).__name__
