"""Live bytes over program order: unions of intervals, checked against counting bytes one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlamem.analysis.copies import copies_at_peak, padded_axes, padding_at_peak
from xlamem.analysis.occupancy import Extent, Occupancy
from xlamem.analysis.timeline import alive_at_peak, expanded, timeline
from xlamem.readers.dump import read_dump
from xlamem.report import Allocation, Buffer, MemoryReport
from xlamem.shape import Shape

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"
STEPS = [(f"i{n}", f"op{n}") for n in range(6)]


def heap(*buffers: Buffer, size: int = 1000) -> Allocation:
    return Allocation("hbm", "temp", size, buffers=buffers)


def buffer(name: str, offset: int, size: int, first: int, last: int, shape: str | None = None) -> Buffer:
    return Buffer(name, size, offset, Shape.parse(shape) if shape else None, live=(first, last))


def test_what_is_held_and_what_comes_and_goes() -> None:
    argument = Allocation("hbm", "argument", 100, unpadded_bytes=60)
    found = timeline("hbm", [argument, heap(buffer("a", 0, 10, 1, 2), buffer("b", 10, 20, 2, 3))], STEPS)
    assert found is not None
    assert found.live == (100, 110, 130, 120, 100, 100)
    assert found.unpadded == (60, 70, 90, 80, 60, 60)
    assert (found.peak_at, found.instructions[found.peak_at], found.op_names[2]) == (2, "i2", "op2")


def test_values_that_share_bytes_count_once() -> None:
    # b is a view of a; c overwrites a in place; d is elsewhere.
    parts = (
        buffer("a", 0, 10, 0, 3),
        buffer("b", 0, 10, 1, 2),
        buffer("c", 0, 10, 3, 4),
        buffer("d", 50, 5, 3, 3),
    )
    found = timeline("hbm", [heap(*parts)], STEPS)
    assert found is not None
    assert found.live == (10, 10, 10, 15, 10, 0)


def test_padding_of_shared_bytes_is_that_of_who_has_most_data() -> None:
    # 1024 bytes hold f32[8,3] (96 bytes of data in a row-major tile) and then f32[256].
    parts = (
        buffer("a", 0, 4096, 0, 2, "f32[8,3]{1,0:T(8,128)}"),
        buffer("b", 0, 4096, 2, 3, "f32[1024]{0:T(1024)}"),
    )
    found = timeline("hbm", [heap(*parts, size=4096)], STEPS)
    assert found is not None
    assert found.unpadded == (96, 96, 4096, 4096, 0, 0)


def test_without_live_ranges_there_is_no_timeline() -> None:
    assert timeline("hbm", [heap(Buffer("a", 10, 0))], STEPS) is None
    assert timeline("hbm", [heap(buffer("a", 0, 10, 1, 2))], []) is None
    # Without a heap nothing comes and goes.
    held = timeline("hbm", [Allocation("hbm", "output", 7)], STEPS)
    assert held is not None
    assert held.live == (7,) * 6


places = st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(0, 7), st.integers(0, 4))


@given(st.lists(places, min_size=1, max_size=14))
def test_union_is_that_of_single_bytes(values: list[tuple[int, int, int, int]]) -> None:
    parts = tuple(buffer(f"v{n}", o, s, first, first + more) for n, (o, s, first, more) in enumerate(values))
    steps = [(f"i{n}", None) for n in range(12)]
    found = timeline("hbm", [heap(*parts), Allocation("hbm", "argument", 1)], steps)
    assert found is not None
    for at in range(12):
        here = [range(o, o + s) for o, s, first, more in values if first <= at <= first + more]
        assert found.live[at] == 1 + len({byte for part in here for byte in part})


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=10))
def test_occupancy_ends_empty(parts: list[tuple[int, int, int]]) -> None:
    occupancy = Occupancy()
    extents = [Extent(offset, size, min(size, data)) for offset, size, data in parts]
    for extent in extents:
        occupancy.add(extent)
        assert 0 <= occupancy.unpadded <= occupancy.live
    for extent in extents:
        occupancy.remove(extent)
        assert 0 <= occupancy.unpadded <= occupancy.live
    assert (occupancy.live, occupancy.unpadded) == (0, 0)


def report(folder: str) -> MemoryReport:
    return read_dump(DUMPS / folder)[0]


def test_peak_of_a_real_program() -> None:
    (found,) = (t for t in report("tpu_fit").timelines if t.space == "hbm")
    # Of the dump's own: 107:fusion.32, whose body is line 201 of the user's file.
    assert found.instructions[found.peak_at] == "fusion.32"
    assert found.op_names[found.peak_at] == "jit(loss)/transpose(jvp())/while/body/closed_call/reduce_sum"
    assert (found.source_file, found.source_line) == ("/home/user/project/progs.py", 201)
    # The heap is 5372101120 bytes; arguments, outputs, constants and thread-locals take the rest.
    assert found.live[found.peak_at] == 5403323904
    assert 5403568640 - found.live[found.peak_at] == 244736


def test_what_is_alive_there() -> None:
    rows = alive_at_peak(report("tpu_fit"))
    largest = [(a.bytes, str(a.shape)) for a in rows[:3]]
    # Two stacks of f32[6,65536,5,5] with 5 x 5 padded to 8 x 128, and one of bf16.
    assert largest == [
        (1610612736, "f32[6,65536,5,5]{3,2,1,0:T(8,128)}"),
        (1610612736, "f32[6,65536,5,5]{3,2,1,0:T(8,128)}"),
        (805306368, "bf16[6,65536,5,5]{3,2,1,0:T(8,128)(2,1)}"),
    ]
    assert all(a.at_peak for a in rows)


def test_heaps_expanded() -> None:
    found = report("tpu_fit")
    shown = expanded(found)
    space = found.space
    assert space is not None
    temps = [a for a in shown.in_space("hbm") if a.kind == "temp"]
    assert sum(a.bytes for a in temps) == space.padded
    assert sum(a.unpadded_bytes or 0 for a in temps) == space.unpadded
    assert not any(a.buffers for a in temps)
    others = [a for a in found.allocations if a.kind != "temp"]
    assert [a for a in shown.allocations if a.kind != "temp"] == others
    assert shown.spaces == found.spaces


def test_padding_by_axis_and_cause() -> None:
    found = report("tpu_fit")
    axes = padded_axes(alive_at_peak(found))
    assert [(a.why, a.before, a.after) for a in axes[:2]] == [("lane", 5, 128), ("sublane", 5, 8)]
    assert sum(a.bytes for a in axes) == pytest.approx(padding_at_peak(found), abs=len(axes))
    (only,) = padded_axes(alive_at_peak(report("padded")))
    assert (only.why, only.before, only.after, only.bytes, only.count) == ("lane", 3, 128, 1000 << 20, 2)


def test_layout_copies_at_the_peak() -> None:
    assert [(c.name, c.bytes) for c in copies_at_peak(report("tpu_fit"))] == [("copy.2", 134217728)]
    assert copies_at_peak(report("tpu_oom")) == ()


def test_every_space_has_its_own() -> None:
    found = report("tpu_oom")
    assert [t.space for t in found.timelines] == ["hbm", "smem", "vmem"]
    for t in found.timelines:
        (space,) = (s for s in found.spaces if s.name == t.space)
        assert space.total is not None
        assert t.live[t.peak_at] == space.peak
        assert t.live[t.peak_at] + (space.fragmentation or 0) == space.total
        assert len(t.live) == len(t.instructions) == len(t.op_names) == 153
