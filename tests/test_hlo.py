"""HLO text and proto: rows, sources, program order, where values come from, and the estimate from HLO alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from xlamem.analysis.timeline import alive_at_peak
from xlamem.readers import hlo_proto, hlo_text, live_range
from xlamem.readers.dump import read_bytes, read_dump
from xlamem.readers.hlo_copies import layout_copies
from xlamem.readers.hlo_flow import Flow
from xlamem.readers.hlo_module import HloModule
from xlamem.readers.storage import Storage

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"
TEXTS = sorted(DUMPS.glob("*/*after_optimizations.txt"))
IDS = [f"{path.parent.name}/{path.name.split('.')[0]}" for path in TEXTS]


def module(folder: str) -> HloModule:
    return hlo_text.parse(next((DUMPS / folder).glob("*after_optimizations.txt")).read_text())


@pytest.mark.parametrize("path", TEXTS, ids=IDS)
def test_every_instruction_is_a_row(path: Path) -> None:
    text = path.read_text()
    found = hlo_text.parse(text)
    rows = [i for c in found.computations.values() for i in c.instructions]
    assert len(rows) == len(re.findall(r"^  (?:ROOT )?%?[\w.\-]+ = ", text, re.MULTILINE))
    assert all(i.shape is not None and i.bytes is not None for i in rows)
    assert not found.notes
    assert not found.truncated
    # A shape prints as it was read.
    for i in rows:
        assert f"{i.name} = {i.shape} {i.opcode}(" in text


@pytest.mark.parametrize("path", TEXTS, ids=IDS)
def test_proto_gives_the_same_module(path: Path) -> None:
    text = hlo_text.parse(path.read_text())
    proto = hlo_proto.read(path.with_name(path.name.replace(".txt", ".hlo.pb")).read_bytes()).module
    assert proto is not None
    assert {name: c.instructions for name, c in proto.computations.items()} == {
        name: c.instructions for name, c in text.computations.items()
    }
    assert proto.entry == text.entry
    assert {name: (c.root, c.root_opcode) for name, c in proto.computations.items()} == {
        name: (c.root, c.root_opcode) for name, c in text.computations.items()
    }
    assert proto.scheduled
    assert text.scheduled
    assert proto.aliased_parameters == text.aliased_parameters


@pytest.mark.parametrize("path", TEXTS, ids=IDS)
def test_program_order_is_the_compilers(path: Path) -> None:
    files = list(path.parent.glob(f"{path.name.split('.')[0]}*-live-range.txt"))
    files += path.parent.glob(f"{path.name.split('.')[0]}*-buffer-assignment.txt")
    live = next(found for p in files if (found := live_range.parse(p.read_text())) is not None)
    assert tuple(i.name for i in hlo_text.parse(path.read_text()).sequence) == live.sequence


def test_donated_parameters() -> None:
    # input_output_alias={ {0}: (0, {}, may-alias), ... } of twelve donated arrays.
    assert module("train").aliased_parameters == frozenset(range(12))


def test_stack_frames_give_the_source() -> None:
    # FileLocations 4 is line 26; StackFrames 4 points there.
    row = module("tpu_oom").instructions["fusion.19.remat"]
    assert (row.op_name, row.source_file, row.source_line) == (
        "jit(loss)/jvp()/dot_general",
        "/home/user/project/progs.py",
        26,
    )


LINES = """HloModule m, is_scheduled=true

ENTRY %main (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0), metadata={op_name="state[\\'a\\"b}\\']" source_file="a (1).py" source_line=7}
  %t = (f32[2]{0}, /*index=1*/(s32[], f32[2]{0:T(128)})) custom-call(f32[2]{0} %p, f32[] %q), custom_call_target="x)"
  %c = f32[2]{0} constant({1, (2)})
  ROOT %r.1-a = f32[2]{0} fusion(%p, /*index=1*/%c), kind=kLoop, calls=%f, metadata={op_type="add" op_name="add"}
}
"""


def test_awkward_lines() -> None:
    found = hlo_text.parse(LINES)
    rows = {i.name: i for i in found.sequence}
    assert not found.notes
    assert rows["p"].op_name == "state['a\"b}']"
    assert (rows["p"].source_file, rows["p"].source_line, rows["p"].number) == ("a (1).py", 7, 0)
    assert rows["t"].operands == ("p", "q")
    assert rows["c"].operands == ()
    assert rows["r.1-a"].operands == ("p", "c")
    assert rows["r.1-a"].called == ("f",)
    assert rows["r.1-a"].op_name == "add"
    assert found.computations["main"].root == "r.1-a"


def test_an_unknown_type_hides_one_row_only() -> None:
    found = hlo_text.parse(LINES.replace("%c = f32[2]{0} constant", "%c = f3!2[2]{0} constant"))
    assert len(found.sequence) == 4
    assert [i.name for i in found.sequence if i.shape is None] == ["c"]


def test_cut_text_is_told() -> None:
    assert hlo_text.parse(LINES[: LINES.index("ROOT")]).notes == (
        "the HLO text ends inside computation main",
    )
    cut = next((DUMPS / "tpu_oom").glob("*optimizations.txt")).read_text()[:50_000]
    found = hlo_text.parse(cut)
    assert found.truncated
    assert found.notes[0] == "the HLO text ends before its ENTRY computation"


def test_names_are_traced_to_the_producer() -> None:
    flow = Flow(module("tpu_fit"))
    # %copy-start.2 = copy-start(%m.1), and m.1 is the argument "m".
    named = flow.op_name(("copy-start.2", (0,)))
    assert named is not None
    assert named.op_name == "m"
    # Room for a loop's results, made by nobody: %custom-call.4 goes into %tuple.56 as element 5, the loop's
    # body gives back %bitcast_dynamic-update-slice_fusion.10 there.
    filled = flow.op_name(("custom-call.4", ()))
    assert filled is not None
    assert filled.op_name is not None
    assert filled.op_name.startswith("jit(loss)/jvp()/while")


def test_a_loops_buffer_is_one() -> None:
    storage = Storage(module("tpu_fit"))
    # Offset 114688 of the heap, one after the other, in the buffer assignment.
    same = [
        ("custom-call.4", ()),
        ("wide.arg_tuple.3", (5,)),
        ("bitcast_dynamic-update-slice_fusion.10", ()),
        ("while.5", (5,)),
        ("get-tuple-element.493", ()),
    ]
    assert len({storage.find(place) for place in same}) == 1
    assert storage.find(("custom-call.6", ())) != storage.find(same[0])


@pytest.mark.parametrize("path", TEXTS, ids=IDS)
def test_estimate_bounds_the_peak(path: Path) -> None:
    report = read_bytes(path.name, path.read_bytes())
    compiled = read_dump(path.parent, ".".join(path.name.split(".")[:2]))[0]
    assert report is not None
    assert report.space is not None
    assert compiled.space is not None
    assert report.provenance == "estimated"
    assert report.fits is None
    assert any("upper bound" in note for note in report.notes)
    peak = compiled.space.peak
    small = sum(a.bytes for a in compiled.allocations if a.kind == "thread-local")
    small += sum(b.bytes for a in compiled.allocations for b in a.buffers if b.shape and b.shape.is_tuple)
    assert report.space.peak is not None
    assert peak is not None
    assert report.space.peak >= peak - small
    assert report.space.peak <= 1.6 * peak
    rows = alive_at_peak(report)
    assert sum(a.bytes for a in rows) == report.space.peak


def test_before_optimizations_is_marked() -> None:
    text = LINES.replace(", is_scheduled=true", "")
    report = read_bytes("m.txt", text.encode())
    assert report is not None
    assert any("not scheduled" in note for note in report.notes)


def test_layout_copies_name_who_disagrees() -> None:
    (report,) = read_dump(DUMPS / "tpu_fit")
    copies = {c.name: c for c in report.copies}
    # %copy = f32[65536,5,5]{2,1,0} copy(%v.1), into a loop; %copy.3 turns the result back for the output.
    into = copies["copy"]
    assert (into.bytes, into.producer, into.producer_op_name) == (268435456, "v.1", "v")
    assert (str(into.from_shape), str(into.to_shape)) == (
        "f32[65536,5,5]{0,2,1:T(8,128)}",
        "f32[65536,5,5]{2,1,0:T(8,128)}",
    )
    assert into.consumer is not None
    assert into.consumer_op_name is not None
    assert "while/body" in into.consumer_op_name
    assert copies["copy.2"].at_peak is True
    assert copies["copy.3"].consumer is None
    # copy-start and copy-done only change the memory space.
    assert not any(name.startswith("copy-") for name in copies)


def test_a_copy_that_converts_is_no_layout_copy_by_its_tiles_alone() -> None:
    head = "HloModule m, is_scheduled=true\n\n\nENTRY %main () -> bf16[16,128] {\n"
    body = "  %a = f32[16,128]{1,0:T(8,128)} parameter(0)\n"
    end = "}\n"
    same = "  ROOT %c = bf16[16,128]{1,0:T(8,128)(2,1)} copy(%a)\n"
    other = "  ROOT %c = bf16[16,128]{0,1:T(8,128)(2,1)} copy(%a)\n"
    assert layout_copies(Flow(hlo_text.parse(head + body + same + end))) == {}
    assert set(layout_copies(Flow(hlo_text.parse(head + body + other + end)))) == {"c"}


def test_reading_text_needs_no_protobuf_and_nothing_needs_jax() -> None:
    code = (
        "import sys; from pathlib import Path; from xlamem.readers.dump import read_dump;"
        f"read_dump(Path({str(DUMPS / 'cpu')!r}));"
        "print([m for m in ('jax', 'jaxlib', 'numpy', 'pandas', 'google.protobuf') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_protobuf_the_answer_says_so() -> None:
    (path,) = (DUMPS / "padded").glob("*.hlo.pb")
    code = (
        "import sys; sys.modules['google.protobuf'] = None; from xlamem.readers.dump import read_bytes\n"
        f"read_bytes('x.hlo.pb', open({str(path)!r}, 'rb').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "to read .pb files install protobuf" in done.stderr.splitlines()[-1]
