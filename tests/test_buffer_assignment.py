"""Buffer assignment text and live ranges: the grammar, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from xlamem.readers import buffer_assignment, live_range

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"

TEXT = """BufferAssignment:
allocation 0: size 12, parameter 8, shape |f32[3]| at ShapeIndex {1,0}:
 value: <589 x.1 @0> (size=12,offset=0): f32[3]{0}
allocation 1: size 12, parameter 0, shape |(f32[3], s32[])| at ShapeIndex {}, maybe-live-out:
 value: <1 p{0} (phi) @0> (size=12,offset=0): f32[3]{0}
allocation 2: size 512, output shape is |(f32[1000], /*index=5*/f32[])|, maybe-live-out:
 value: <2 tuple.1{} @0> (size=512,offset=0): (f32[1000]{0}, f32[])
allocation 3: size 4, constant:
 value: <3 constant.1 @0> (size=4,offset=0): f32[]
allocation 4: size 4, thread-local:
allocation 5: size 4096, color 1, preallocated-temp:
 value: <4 copy-start{0,1} @1> (size=4096,offset=8192): f32[8,128]{1,0:T(8,128)S(1)}
"""


def test_kinds_spaces_and_values() -> None:
    found = buffer_assignment.parse(TEXT)
    assert not found.notes
    assert not found.truncated
    assert [(a.kind, a.bytes, a.color) for a in found.allocations] == [
        ("argument", 12, 0), ("alias", 12, 0), ("output", 512, 0), ("constant", 4, 0), ("thread-local", 4, 0),
        ("temp", 4096, 1),
    ]  # fmt: skip
    assert (found.allocations[0].parameter, found.allocations[0].parameter_index) == (8, (1, 0))
    value = found.allocations[5].values[0]
    assert (value.name, value.shape_index, value.bytes, value.offset) == ("copy-start", (0, 1), 4096, 8192)
    assert str(value.shape) == "f32[8,128]{1,0:T(8,128)S(1)}"
    phi = found.allocations[1].values[0]
    assert (phi.name, phi.shape_index, phi.phi) == ("p", (0,), True)
    assert found.allocations[1].line == 4


def test_crlf_and_unknown_lines() -> None:
    found = buffer_assignment.parse(TEXT.replace("\n", "\r\n"))
    assert len(found.allocations) == 6
    strange = TEXT.replace(" value: <3 constant.1", " valve: <3 constant.1")
    assert buffer_assignment.parse(strange).notes == ("1 lines of the buffer assignment could not be read",)


def test_missing_and_double_allocations_are_told() -> None:
    lines = TEXT.splitlines(keepends=True)
    for damaged in ("".join(lines[:3] + lines[5:]), TEXT + "".join(lines[1:])):
        (note,) = buffer_assignment.parse(damaged).notes
        assert note == "allocation numbers are missing or appear twice: totals may be wrong"


@pytest.mark.parametrize("folder", ["tpu_fit", "tpu_oom", "tpu_2024", "cpu", "padded", "train"])
def test_real_files_are_understood_whole(folder: str) -> None:
    for path in (DUMPS / folder).glob("*-buffer-assignment.txt"):
        text = path.read_text()
        found = buffer_assignment.parse(text)
        assert not found.notes
        table = text.partition("\nTotal bytes used:")[0]
        assert len(found.allocations) == table.count("allocation ")
        assert sum(len(a.values) for a in found.allocations) == table.count(" value: <")
        assert all(v.shape is not None for a in found.allocations for v in a.values)
        # What XLA assigns is what the shape says.
        for allocation in found.allocations:
            for value in allocation.values:
                if value.shape is not None and not value.shape.is_tuple:
                    assert value.bytes == value.shape.padded_bytes, value


LIVE = """HloLiveRange (max 3):
  InstructionSequence:
    0:a
    1:b.2
    2:c
  BufferLiveRange:
    a{}:0-3
    b.2{0,1}:1-2
    c:2-3
  Live ranges at 2 (peak):
    a{}: 12 bytes (cumulative: 12 bytes)
"""


def test_live_ranges() -> None:
    found = live_range.parse(LIVE)
    assert found is not None
    assert found.sequence == ("a", "b.2", "c")
    assert found.ranges == {("a", ()): (0, 3), ("b.2", (0, 1)): (1, 2), ("c", ()): (2, 3)}
    assert (found.notes, found.truncated) == ((), False)


def test_live_ranges_behind_other_things() -> None:
    found = live_range.parse(TEXT + "\n\n" + LIVE)
    assert found is not None
    assert len(found.ranges) == 3
    assert live_range.parse(TEXT) is None
    (path,) = (DUMPS / "tpu_2024").glob("*-buffer-assignment.txt")
    old = live_range.parse(path.read_text())
    assert old is not None
    assert (len(old.sequence), old.ranges["add.22", ()]) == (30, (13, 15))


def test_cut_live_ranges() -> None:
    found = live_range.parse(LIVE[: LIVE.index("Live ranges")])
    assert found is not None
    assert found.truncated
    assert found.notes == ("the live ranges break off: the timeline is not complete",)
    missing = live_range.parse(LIVE.replace("    1:b.2\n", ""))
    assert missing is not None
    assert missing.sequence == ("a", "", "c")
    # A number that nobody can mean must not allocate memory.
    huge = live_range.parse(LIVE.replace("2:c", "9999999999999:c"))
    assert huge is not None
    assert huge.sequence == ("a", "b.2")
