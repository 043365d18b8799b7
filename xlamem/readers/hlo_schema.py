"""The fields of XLA's protos that say something about memory, and the message classes made from them.

Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto. All other fields are skipped by the
protobuf library at C speed. The descriptor is built here instead of by protoc, so that it works with
whichever protobuf (4 to 7) is installed; protobuf is imported when the first .pb is read.
"""

from __future__ import annotations

from functools import cache
from typing import Any

# name -> {field: (number, type)}; "*" repeats, a capital letter is a message of this table.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "HloProto": {"hlo_module": (1, "HloModule"), "buffer_assignment": (3, "BufferAssignment")},
    "HloModule": {
        "name": (1, "string"),
        "entry_computation_name": (2, "string"),
        "computations": (3, "Computation*"),
        "entry_computation_id": (6, "int64"),
        "schedule": (7, "Schedule"),
        "input_output_alias": (8, "InputOutputAlias"),
        "stack_frame_index": (17, "StackFrameIndex"),
    },
    "Computation": {
        "name": (1, "string"),
        "instructions": (2, "bytes*"),
        "id": (5, "int64"),
        "root_id": (6, "int64"),
    },
    # From here to "Metadata": columns, see hlo_columns. Shapes and metadata stay undecoded: a module has a
    # hundred times more of them than distinct ones.
    "Instructions": {
        "name": (1, "string*"),
        "opcode": (2, "string*"),
        "shape": (3, "bytes*"),
        "metadata": (7, "bytes*"),
        "id": (35, "int64*"),
        "operand_ids": (36, "int64*"),
    },
    "ParameterNumbers": {"parameter_number": (9, "int64*")},
    "TupleIndices": {"tuple_index": (13, "int64*")},
    "Calls": {"called_computation_ids": (38, "int64*")},
    "Heads": {"name": (1, "string*"), "opcode": (2, "string*"), "id": (35, "int64*")},
    "LogicalBuffers": {"id": (1, "int64*"), "defined_at": (3, "bytes*")},
    "Locations": {"shape_index": (3, "bytes*"), "instruction_id": (4, "int64*")},
    "LocationNames": {"instruction_name": (2, "string*")},
    "AssignedValues": {
        "logical_buffer_id": (1, "int64*"),
        "offset": (2, "int64*"),
        "size": (3, "int64*"),
    },
    "Events": {"kind": (1, "int32*"), "buffer_id": (2, "int64*")},
    "EventNames": {"instruction_name": (4, "string*")},
    "Metadata": {
        "op_name": (2, "string"),
        "source_file": (3, "string"),
        "source_line": (4, "int32"),
        "stack_frame_id": (15, "int32"),
    },
    "Schedule": {"sequences": (1, "Sequence*")},
    # A map<int64, InstructionSequence> on the wire.
    "Sequence": {"key": (1, "int64"), "value": (2, "InstructionSequence")},
    "InstructionSequence": {"instruction_ids": (1, "int64*")},
    "InputOutputAlias": {"entries": (1, "AliasEntry*")},
    "AliasEntry": {"parameter_number": (2, "int64")},
    "StackFrameIndex": {
        "file_names": (1, "string*"),
        "file_locations": (3, "FileLocation*"),
        "stack_frames": (4, "StackFrame*"),
    },
    "FileLocation": {"file_name_id": (1, "int32"), "line": (3, "int32")},
    "StackFrame": {"file_location_id": (1, "int32")},
    "Shape": {
        "element_type": (2, "int32"),
        "dimensions": (3, "int64*"),
        "tuple_shapes": (4, "Shape*"),
        "layout": (5, "Layout"),
        "is_dynamic_dimension": (6, "bool*"),
    },
    "Layout": {
        "minor_to_major": (1, "int64*"),
        "tiles": (6, "Tile*"),
        "element_size_in_bits": (7, "int64"),
        "memory_space": (8, "int64"),
        "dynamic_shape_metadata_prefix_bytes": (15, "int64"),
        "tail_padding_alignment_in_elements": (16, "int64"),
        "split_configs": (17, "SplitConfig*"),
    },
    "Tile": {"dimensions": (1, "int64*")},
    "SplitConfig": {"dimension": (1, "int64"), "split_indices": (2, "int64*")},
    "BufferAssignment": {
        "logical_buffers": (1, "bytes*"),
        "buffer_allocations": (3, "BufferAllocation*"),
        "heap_simulator_traces": (4, "HeapSimulatorTrace*"),
    },
    "BufferAllocation": {
        "index": (1, "int64"),
        "size": (2, "int64"),
        "is_thread_local": (3, "bool"),
        "is_entry_computation_parameter": (5, "bool"),
        "parameter_number": (6, "int64"),
        "maybe_live_out": (7, "bool"),
        "color": (8, "int64"),
        "assigned": (9, "bytes*"),
        "parameter_shape_index": (10, "int64*"),
        "is_constant": (12, "bool"),
    },
    "HeapSimulatorTrace": {"events": (1, "bytes*")},
}

_TYPES = {"int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
_MESSAGE = 11
_OPTIONAL, _REPEATED = 1, 3
_PACKAGE = "xlamem.hlo"


def fields(name: str) -> dict[str, tuple[int, str]]:
    """The fields of one message of the table above: number and type of each."""
    return _MESSAGES[name]


@cache
def message(name: str) -> Any:
    """The class of one message of the table above.

    Raises:
        ImportError: the protobuf library is not installed.
    """
    from google.protobuf import message_factory

    descriptor = _pool().FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(descriptor)


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pool

    # A pool of our own: another library in the process may know XLA's protos under their own names.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file())
    return pool


def _file() -> bytes:
    """A FileDescriptorProto of the table, serialized; by hand, as to load the library's own takes longer."""
    parts = [_string(1, "xlamem/hlo.proto"), _string(2, _PACKAGE)]
    for name, fields in _MESSAGES.items():
        content = _string(1, name)
        for field, (number, kind) in fields.items():
            one = kind.removesuffix("*")
            label = _REPEATED if kind.endswith("*") else _OPTIONAL
            entry = _string(1, field) + bytes(
                (3 << 3, number, 4 << 3, label, 5 << 3, _TYPES.get(one, _MESSAGE))
            )
            if one not in _TYPES:
                entry += _string(6, f".{_PACKAGE}.{one}")
            content += _bytes(2, entry)
        parts.append(_bytes(4, content))
    return b"".join([*parts, _string(12, "proto3")])


def _string(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, data: bytes) -> bytes:
    """A field on the wire: its number and type, the length in groups of seven bits, the content."""
    size = len(data)
    length = bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7))
    return bytes((number << 3 | 2,)) + length + data
