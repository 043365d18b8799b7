"""Dump folders: the exact table, checked against the dump's own totals and against XProf's Memory Viewer."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from xlamem.analysis.copies import padding_at_peak
from xlamem.analysis.timeline import alive_at_peak
from xlamem.errors import NotAReportError, NotReadableError
from xlamem.readers.dump import read_bytes, read_dump
from xlamem.report import MemoryReport

DUMPS = Path(__file__).parent.parent / "fixtures" / "dumps"

#: Program -> what the dump's own memory usage report says ("Total bytes"), by memory space.
TOTALS = {
    ("tpu_fit", "jit_loss"): {"hbm": 5403568640, "vmem": 11010048, "smem": 12, "color_6": 1024},
    ("tpu_oom", "jit_loss"): {"hbm": 38863540736, "vmem": 12296192, "smem": 8},
    ("padded", "jit_f"): {"hbm": 1073741824},
    ("train", "jit_step"): {"hbm": 40946176},
    ("cpu", "module_0000.jit_f"): {"host": 105920024},
    ("cpu", "module_0002"): {"host": 8796093022271},
    ("cpu", "module_0004"): {"host": 17592186044420},
}

#: XProf 2.x, memory_viewer, memory space 0, on the same protos: totalBufferAllocationMib, peakHeapMib. It leaves
#: thread-local allocations out.
XPROF = {
    ("tpu_fit", "jit_loss"): (5153.240234375, 5153.005859375),
    ("tpu_oom", "jit_loss"): (37063.15771484375, 37062.5009765625),
    ("tpu_2024", "jit_f"): (20480.00146484375, 20480.00146484375),
    ("padded", "jit_f"): (1024.0, 1024.0),
    ("cpu", "module_0000.jit_f"): (101.0132064819336, 101.0132064819336),
}
MIB = 1 << 20


def one(folder: str, module: str) -> MemoryReport:
    (report,) = read_dump(DUMPS / folder, module)
    return report


def thread_local(report: MemoryReport) -> int:
    return sum(a.bytes for a in report.allocations if a.kind == "thread-local")


@pytest.mark.parametrize(("folder", "module"), TOTALS)
def test_totals_are_the_dumps_own(folder: str, module: str) -> None:
    report = one(folder, module)
    totals = {space.name: space.total for space in report.spaces}
    expected = TOTALS[folder, module]
    assert {name: totals[name] for name in expected} == expected
    assert report.provenance == "compiled"
    assert not report.partial
    assert not any("two compiles" in note for note in report.notes)


def test_totals_of_2024_count_every_memory_space() -> None:
    report = one("tpu_2024", "jit_f")
    # "Total bytes used: 21474853888 (20.00GiB)"
    assert sum(space.total or 0 for space in report.spaces) == 21474853888
    assert {space.name: space.total for space in report.spaces} == {"hbm": 21474853376, "color_6": 512}


@pytest.mark.parametrize(("folder", "module"), XPROF)
def test_totals_and_peak_are_xprofs(folder: str, module: str) -> None:
    report = one(folder, module)
    total, peak = XPROF[folder, module]
    space = report.space
    assert space is not None
    assert space.total is not None
    assert space.peak is not None
    assert (space.total - thread_local(report)) / MIB == pytest.approx(total, abs=1e-9)
    # XProf replays the trace of the heap, which leaves out some tables of pointers.
    assert abs((space.peak - thread_local(report)) - peak * MIB) <= 40 * 1024


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "module"), XPROF)
def test_xprof_still_says_so(folder: str, module: str, tmp_path: Path) -> None:
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    profile = tmp_path / "plugins" / "profile" / "s1"
    profile.mkdir(parents=True)
    plane = profile / "host.xplane.pb"
    plane.touch()
    proto = next(p for p in (DUMPS / folder).glob("*after_optimizations.hlo.pb") if module in p.name)
    shutil.copy(proto, profile / "m.hlo_proto.pb")
    options = {"module_name": "m", "memory_space": "0"}
    data, _ = convert.xspace_to_tool_data([str(plane)], "memory_viewer", options)
    shown = json.loads(data)
    total, peak = XPROF[folder, module]
    assert shown["totalBufferAllocationMib"] == pytest.approx(total)
    assert shown["peakHeapMib"] == pytest.approx(peak)


@pytest.mark.parametrize(("folder", "module"), [*TOTALS, ("tpu_2024", "jit_f")])
def test_proto_and_text_give_the_same_table(folder: str, module: str, tmp_path: Path) -> None:
    whole = one(folder, module)
    for path in (DUMPS / folder).iterdir():
        if not path.name.endswith("-buffer-assignment.txt") and not path.name.endswith("optimizations.txt"):
            shutil.copy(path, tmp_path)
    (by_proto,) = read_dump(tmp_path, module)

    def table(report: MemoryReport) -> list[object]:
        return [
            (
                a.space, a.kind, a.bytes, a.unpadded_bytes if a.kind != "temp" else None, a.op_name, a.source_line,
                sorted(
                    (b.name, b.index, b.bytes, b.offset, str(b.shape), b.opcode, b.op_name, b.source_file, b.source_line)
                    for b in a.buffers
                ),
            )
            for a in report.allocations
        ]  # fmt: skip

    assert table(by_proto) == table(whole)
    assert [s.total for s in by_proto.spaces] == [s.total for s in whole.spaces]


def test_forced_row_major_layouts_are_padding() -> None:
    # f32[1048576,3] in and out: 12 MiB of data each in 512 MiB. XProf's page shows no padding here.
    report = one("padded", "jit_f")
    assert padding_at_peak(report) == 1000 * MIB
    assert {(a.kind, a.padding_bytes) for a in report.allocations if a.bytes} == {
        ("argument", 500 * MIB),
        ("output", 500 * MIB),
    }


def test_totals_are_of_allocations_not_of_values() -> None:
    report = one("tpu_oom", "jit_loss")
    heap = max(report.allocations, key=lambda a: a.bytes)
    assert heap.kind == "temp"
    assert heap.bytes == 36700848640
    # The values take turns: together they are more than twice the heap.
    assert sum(b.bytes for b in heap.buffers) > 2 * heap.bytes
    space = report.space
    assert space is not None
    assert space.temps == heap.bytes
    assert space.temps == (space.padded or 0) + (space.fragmentation or 0)
    assert space.total == (space.peak or 0) + (space.fragmentation or 0)


def test_every_value_has_its_facts() -> None:
    report = one("tpu_oom", "jit_loss")
    values = {(b.name, b.index): b for a in report.allocations for b in a.buffers}
    # From the text: " value: <591 convolution_tanh_fusion.7 @0> (size=2097152000,offset=...)" and the HLO.
    value = values["fusion.19.remat", ()]
    assert (value.bytes, str(value.shape)) == (2097152000, "f32[524288,1000]{0,1:T(8,128)}")
    assert value.opcode == "fusion"
    assert value.op_name == "jit(loss)/jvp()/dot_general"
    assert (value.source_file, value.source_line) == ("/home/user/project/progs.py", 26)
    assert value.live == (83, 87)
    assert value.at_peak


def test_arguments_are_named_by_their_own_op_name() -> None:
    report = one("train", "jit_step")
    arguments = {a.op_name: a for a in report.allocations if a.kind in ("argument", "alias")}
    assert arguments["params['layer0']['w']"].kind == "alias"
    assert arguments["batch['x']"].kind == "argument"
    space = report.space
    assert space is not None
    # Two batches of 16 MiB; three donated trees of two 1 MiB matrices and two 2 KiB vectors.
    assert space.arguments == 2 * 16 * MIB + 3 * 2 * (MIB + 2048)
    assert space.aliased == 3 * 2 * (MIB + 2048)


def test_target_and_verdict() -> None:
    report = one("tpu_oom", "jit_loss")
    assert (report.backend, report.fits, report.kind, report.severity) == ("tpu", False, "hbm", "error")
    assert report.target is not None
    assert (report.target.name, report.target.inferred) == ("v5e", True)
    assert report.message.startswith("jit_loss needs 36.19GiB of HBM; 15.75GiB can be used")
    assert one("tpu_fit", "jit_loss").fits is True
    assert one("tpu_2024", "jit_f").target == report.target
    assert one("cpu", "module_0000").fits is None


def test_the_compilers_own_verdict_counts_first(tmp_path: Path) -> None:
    shutil.copytree(DUMPS / "padded", tmp_path, dirs_exist_ok=True)
    (tmp_path / "module_0000.jit_f.cl_933746096.oom_intermediate_module.txt").write_text("HloModule jit_f\n")
    (report,) = read_dump(tmp_path)
    assert report.fits is False
    assert "the compiler found that it does not fit" in report.message


@pytest.mark.parametrize(
    ("version", "variant", "name"),
    [
        ("JELLYFISH", "", "v2"), ("DRAGONFISH", "", "v3"), ("PUFFERFISH", "", "v4"), ("VIPERFISH", "lite", "v5e"),
        ("VIPERFISH", "", "v5p"), ("GHOSTLITE", "", "v6e"), ("6acc60406", "", "v7x"),
    ],
)  # fmt: skip
def test_target_from_the_compilers_arguments(version: str, variant: str, name: str, tmp_path: Path) -> None:
    shutil.copytree(DUMPS / "padded", tmp_path, dirs_exist_ok=True)
    text = f"tpu_topology_args {{\n  version: TPU_VERSION_{version}\n"
    text += f'  variant: "{variant}"\n' if variant else ""
    (tmp_path / "module_0000.jit_f.cl_933746096.target_arguments.txt").write_text(text)
    (report,) = read_dump(tmp_path)
    assert report.target is not None
    assert report.target.name == name


def test_several_programs_the_hosts_last(tmp_path: Path) -> None:
    for folder in ("tpu_fit", "cpu", "tpu_2024"):
        shutil.copytree(DUMPS / folder, tmp_path, dirs_exist_ok=True)
    reports = read_dump(tmp_path)
    # What does not fit first; the CPU's, though terabytes, last.
    assert [(r.program, r.backend) for r in reports] == [
        ("jit_f", "tpu"),
        ("jit_loss", "tpu"),
        ("jit__lambda", "cpu"),
        ("jit__lambda", "cpu"),
        ("jit_f", "cpu"),
    ]
    assert [r.program for r in read_dump(tmp_path, "module_0001.jit_f")] == ["jit_f"]
    assert [r.program for r in read_dump(tmp_path, "loss")] == ["jit_loss"]
    assert len(read_dump(tmp_path, "jit_f")) == 2
    with pytest.raises(NotAReportError, match=r"no module 'jit_g'; there are: .*module_0000\.jit_loss"):
        read_dump(tmp_path, "jit_g")


def test_a_module_that_was_cloned_on_the_way_is_one(tmp_path: Path) -> None:
    # Programs with branches come out under another number than they went in.
    for path in (DUMPS / "tpu_fit").iterdir():
        number = "0003" if "target" in path.name else "0007"
        shutil.copy(path, tmp_path / path.name.replace("module_0000", f"module_{number}"))
    (text,) = (DUMPS / "tpu_fit").glob("*after_optimizations.txt")
    shutil.copy(text, tmp_path / "module_0003.jit_loss.cl_933746096.before_optimizations.txt")
    (report,) = read_dump(tmp_path)
    assert report.provenance == "compiled"
    assert report.target is not None
    assert report.target.name == "v5e"


def test_gpu_names_and_target(tmp_path: Path) -> None:
    for path in (DUMPS / "cpu").glob("module_0000*"):
        shutil.copy(path, tmp_path / path.name.replace("cpu_after", "sm_9.0a_gpu_after"))
    (tmp_path / "module_0000.jit_f.gpu_target_config.pbtxt").write_text(
        'gpu_device_info {\n  core_count: 132\n}\ndevice_description_str: "NVIDIA H100 80GB HBM3"\n'
    )
    (report,) = read_dump(tmp_path)
    assert (report.backend, report.program, report.fits) == ("gpu", "jit_f", True)
    assert report.target is not None
    assert report.target.name == "h100"
    assert report.space is not None
    assert (report.space.name, report.space.total) == ("hbm", 105920024)


def test_two_builds_of_the_compiler_in_one_folder(tmp_path: Path) -> None:
    shutil.copytree(DUMPS / "padded", tmp_path, dirs_exist_ok=True)
    for path in list(tmp_path.iterdir()):
        shutil.copy(path, tmp_path / path.name.replace("cl_933746096", "cl_800000000"))
    reports = read_dump(tmp_path)
    assert len(reports) == 2
    notes = [note for r in reports for note in r.notes if "2 builds" in note]
    assert sorted(re.findall(r"cl_\d+", " ".join(notes))) == ["cl_800000000", "cl_933746096"]


def test_mixed_compiles_are_noticed(tmp_path: Path) -> None:
    prefix = "module_0000.jit_f.cl_933746096.after_optimizations"
    shutil.copytree(DUMPS / "padded", tmp_path, dirs_exist_ok=True)
    (path,) = (DUMPS / "tpu_fit").glob("*-buffer-assignment.txt")
    shutil.copy(path, tmp_path / f"{prefix}-buffer-assignment.txt")
    (report,) = read_dump(tmp_path)
    notes = "\n".join(report.notes)
    assert (
        "the memory usage report says 1.00GiB (1073741824 B), the buffer assignment adds up to 5.03GiB"
        in notes
    )
    assert "are not in the HLO module: the files are of two compiles" in notes


def test_a_cut_assignment_is_replaced_by_its_proto(tmp_path: Path) -> None:
    shutil.copytree(DUMPS / "tpu_oom", tmp_path, dirs_exist_ok=True)
    (path,) = tmp_path.glob("*-buffer-assignment.txt")
    path.write_bytes(path.read_bytes()[:9000])
    (report,) = read_dump(tmp_path)
    assert report.space is not None
    assert report.space.total == 38863540736
    assert "the text of the buffer assignment is damaged: its proto was used" in report.notes


def test_a_cut_assignment_alone_is_told(tmp_path: Path) -> None:
    (path,) = (DUMPS / "tpu_oom").glob("*-buffer-assignment.txt")
    (tmp_path / path.name).write_bytes(path.read_bytes()[:9000])
    (report,) = read_dump(tmp_path)
    assert report.truncated
    assert report.partial
    assert any("breaks off" in note for note in report.notes)


def test_a_dump_that_is_being_written(tmp_path: Path) -> None:
    (path,) = (DUMPS / "padded").glob("*after_optimizations.txt")
    shutil.copy(path, tmp_path)
    (tmp_path / path.name.replace(".txt", "-buffer-assignment.txt")).write_bytes(b"")
    (report,) = read_dump(tmp_path)
    assert report.provenance == "estimated"
    assert any("is empty: it may still be being written" in note for note in report.notes)
    assert any("still running or ended early" in note for note in report.notes)


def test_each_file_alone_narrows_the_answer() -> None:
    seen = {}
    for path in sorted((DUMPS / "tpu_fit").iterdir()):
        if path.name.endswith("-live-range.txt"):
            with pytest.raises(NotAReportError, match="live ranges alone"):
                read_bytes(str(path), path.read_bytes())
            continue
        report = read_bytes(str(path), path.read_bytes())
        seen[path.name.split("optimizations")[-1]] = report
    assert seen.pop("module_0000.jit_loss.cl_933746096.target_arguments.txt") is None
    told = {
        name: (r.provenance, r.space.total, bool(r.timelines))
        for name, r in seen.items()
        if r is not None and r.space
    }
    assert told["-buffer-assignment.txt"] == ("compiled", 5403568640, False)
    assert told[".hlo.pb"] == ("compiled", 5403568640, True)
    assert told["-memory-usage-report.txt"] == ("compiled", 5403568640, False)
    assert told[".txt"][0] == "estimated"
    note = "no HLO module beside the buffer assignment: values have no op_name and no source line"
    assert note in (seen["-buffer-assignment.txt"] or pytest.fail("not read")).notes


def test_a_bare_buffer_assignment_proto() -> None:
    path = DUMPS / "cpu" / "serialized_buffer_assignment_proto.pb"
    report = read_bytes(str(path), path.read_bytes())
    assert report is not None
    assert report.space is not None
    assert report.space.total == 105920024


def test_the_lists_of_2024_are_named(tmp_path: Path) -> None:
    shutil.copytree(DUMPS / "tpu_2024", tmp_path, dirs_exist_ok=True)
    for name in ("1796057032752589.peak_memory_tensors.txt", "1796057032752645.peak_memory_tensors.txt"):
        (tmp_path / name).write_text("  Largest program allocations in hbm:\n")
    (tmp_path / "module_0001.jit_f.oom_top_memory_consuming_instructions").write_text(
        "Program hbm requirement 16.0K:\n"
    )
    (report,) = read_dump(tmp_path)
    (one,) = [note for note in report.notes if "oom_top_memory" in note]
    assert "which the table here has too" in one
    (two,) = [note for note in report.notes if "peak_memory_tensors" in note]
    assert two.startswith("1796057032752589.peak_memory_tensors.txt and 1 more like it in the folder")


def test_an_instruction_that_nobody_reaches_is_found() -> None:
    # What a reduction inside a fusion applies: its values have buffers, and only an id leads to it.
    report = one("tpu_fit", "jit_loss")
    values = [b for a in report.allocations if a.kind == "thread-local" for b in a.buffers]
    (proto,) = (DUMPS / "tpu_fit").glob("*optimizations.hlo.pb")
    by_proto = read_bytes(proto.name, proto.read_bytes())
    assert by_proto is not None
    found = {b.name: b.op_name for a in by_proto.allocations for b in a.buffers}
    assert values
    assert {b.name: b.op_name for b in values}.items() <= found.items()


def test_no_dump() -> None:
    with pytest.raises(NotAReportError, match="no XLA dump in this folder"):
        read_dump(Path(__file__).parent)
    with pytest.raises(NotReadableError, match="cannot be listed"):
        read_dump(DUMPS / "nowhere")
    assert read_bytes("notes.txt", b"nothing of the kind\n") is None


def test_rows_at_the_peak_add_up_to_it() -> None:
    for folder in os.listdir(DUMPS):
        for report in read_dump(DUMPS / folder):
            for found in report.timelines:
                rows = alive_at_peak(report, found.space)
                assert sum(a.bytes for a in rows) == found.live[found.peak_at]
                assert sum(a.unpadded_bytes or 0 for a in rows) == found.unpadded[found.peak_at]
