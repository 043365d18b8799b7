"""The TPU forms of a line or a few: facts from the real logs, the forms that were only described, and damage."""

from __future__ import annotations

import time

import pytest
from damage import DAMAGE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tpu_forms import OWN, READERS, assert_sound, figures, log, only, read, sizes

from xlamem.readers.lines import normalise, wrap_width
from xlamem.readers.tpu_oom import read_tpu_oom
from xlamem.units import parse_size

HBM_V5E = ("hbm", "tpu-hbm-line", "hbm")
BUFFER = ("hbm", "tpu-one-buffer", "hbm")
SCOPED = ("onchip", "tpu-scoped-vmem", "vmem")
SMEM = ("onchip", "tpu-one-buffer", "smem")
SFLAG = ("onchip", "tpu-one-buffer", "sflag")
REMAT = ("remat-warning", "remat", "hbm")

# What each log says, written down by reading it: kind, form, space; line; figures.
Fact = tuple[tuple[str, str, str], int, dict[str, int]]
FACTS: dict[str, list[Fact]] = {
    "0.0.50.1_v5e_mlp": [(HBM_V5E, 32, sizes(used="94.88G", capacity="15.75G"))],
    "0.0.50.1_v5e_inprocess": [
        (HBM_V5E, line, sizes(used="20.00G", capacity="15.75G")) for line in (1, 5, 7, 9, 19)
    ],
    "0.0.50.1_v5e_pallas_scoped_vmem": [(SCOPED, 33, sizes(used="64.00M", capacity="16.00M", over="48.00M"))],
    "0.0.42.1_v2_args_240G": [(HBM_V5E, 32, sizes(used="240.00G", capacity="7.48G"))],
    "0.0.42.1_v5e_mlp_oom_dump": [(HBM_V5E, 32, sizes(used="36.19G", capacity="15.75G"))],
    "0.0.42.1_v5e_args_stderr1": [
        (HBM_V5E, 224, sizes(used="20.00G", capacity="15.75G")),
        (REMAT, 1, {"goal": 0, "used": 2560}),
    ],
    "0.0.42.1_v5e_padded_b_409600_nocrash_stderr0": [
        (HBM_V5E, 205, sizes(used="31.25G", capacity="15.75G")),
        (
            REMAT,
            21,
            {"goal": 9352324505, "used": 40265319424}
            | sizes(arguments="6.25G", aliased="0B", overlays="640.0K"),
        ),
    ],
    "0.0.42.1_v5e_scan_nocrash_stderr0": [
        (HBM_V5E, 112, sizes(used="51.89G", capacity="15.75G")),
        *(
            (BUFFER, line, {"requested": 21474836480, "capacity": 17179869184})
            for line in (115, 119, 244, 283)
        ),
        (
            REMAT,
            21,
            {"goal": 15357596569, "used": 55012494336}
            | sizes(arguments="672.00M", aliased="0B", overlays="1.55M"),
        ),
    ],
    "0.0.42.1_v5e_scoped_vmem_xla_mlp": [
        (SCOPED, 33, sizes(used="448.0K", capacity="128.0K", over="320.0K"))
    ],
    "0.0.42.1_v5e_pallas_grid": [(SCOPED, 33, sizes(used="64.00M", capacity="16.00M", over="48.00M"))],
    "0.0.42.1_v5e_pallas_sem": [(SFLAG, 32, {"requested": 400000, "capacity": 2048})],
    "0.0.42.1_v5e_pallas_smem": [(SMEM, 32, {"requested": 4194304, "capacity": 1048576})],
    "0.0.42.1_v5p_pallas_scoped_vmem": [
        (("onchip", "tpu-one-buffer", "vmem"), 32, {"requested": 134217728, "capacity": 67108864})
    ],
    "0.0.37_v5e_padded_batchmat": [(BUFFER, 32, {"requested": 103079215104, "capacity": 17179869184})],
    "0.0.37_v5e_pallas_sflag": [(SFLAG, 32, {"requested": 400000, "capacity": 2048})],
    "0.0.37_v5e_pallas_smem": [(SMEM, 32, {"requested": 4194304, "capacity": 1048576})],
    "0.0.37_v5e_pallas_scoped_vmem": [(SCOPED, 33, sizes(used="64.00M", capacity="16.00M", over="48.00M"))],
    "0.0.23_v5e_padded_batchmat": [(BUFFER, 32, {"requested": 103079215104, "capacity": 17179869184})],
    "0.0.23_v5e_pallas_sflag": [(SFLAG, 32, {"requested": 400000, "capacity": 2048})],
    "0.0.23_v5e_pallas_smem": [(SMEM, 32, {"requested": 4194304, "capacity": 1048576})],
    "0.0.23_v5e_pallas_scoped_vmem": [(SCOPED, 32, sizes(used="32.00M", capacity="16.00M", over="16.00M"))],
    "0.0.7_v5e_padded_batchmat": [
        (("hbm", "tpu-early-abort", "hbm"), 32, sizes(used="320.97G", capacity="14.96G"))
    ],
    "0.0.7_v5e_fastexit_off_batchmat_80G": [
        (BUFFER, 32, {"requested": 25769803776, "capacity": 17179869184})
    ],
    "0.0.7_v5e_pallas_sflag": [(SFLAG, 32, {"requested": 400000, "capacity": 2048})],
    "0.0.7_v5e_pallas_smem": [(SMEM, 32, {"requested": 4194304, "capacity": 1048576})],
    "0.0.7_v5e_pallas_scoped_vmem": [(SCOPED, 32, sizes(used="32.00M", capacity="16.00M", over="16.00M"))],
    # Other forms than these.
    "0.0.23_v5e_mlp": [],
    "0.0.42.1_v5e_batchmat_E1000_long": [],
    "0.0.42.1_v5e_batchmat_fit_stderr0": [],
    "0.0.42.1_v5e_pallas_vmem": [],
    "unet_kernel_v2": [],
}


@pytest.mark.parametrize("name", FACTS)
def test_real_log(name: str) -> None:
    found = [
        ((r.kind, r.source.format, r.space.name if r.space else ""), r.source.line, figures(r))
        for r in read(log(name))
    ]
    assert found == FACTS[name]


@pytest.mark.parametrize("name", [n for n, facts in FACTS.items() if facts])
def test_severity_and_fit(name: str) -> None:
    for report in read(log(name)):
        warning = report.kind == "remat-warning"
        assert report.severity == ("warning" if warning else "error")
        assert report.fits is (None if warning else False)
        assert not report.truncated


def test_short_line_tells_program_chip_and_code() -> None:
    report = only(log("0.0.50.1_v5e_mlp"))
    assert report.program == "jit_loss"
    assert report.target is not None
    assert (report.target.name, report.target.inferred) == ("v5e", True)
    assert report.notes[0] == "Error code E1000 CompileTimeHbmOom"
    assert report.message == (
        "Ran out of memory on HBM, the total memory required for HLO temporaries (94.88G) exceeds available "
        "HBM (15.75G). HLO module: jit_loss."
    )


def test_a_program_name_that_was_cut_is_none() -> None:
    text = log("0.0.50.1_v5e_mlp").split("HLO module: jit_lo", 1)[0] + "HLO module: jit_lo"
    assert only(text).program is None


def test_the_chip_of_an_early_abort_is_told_by_95_percent_of_its_memory() -> None:
    report = only(log("0.0.7_v5e_padded_batchmat"))
    assert report.target is not None
    assert report.target.name == "v5e"


def test_one_buffer_with_its_shape() -> None:
    (a,) = only(log("0.0.23_v5e_padded_batchmat")).allocations
    assert str(a.shape) == "f32[6,4194304,5,5]{3,2,1,0:T(8,128)}"
    assert (a.bytes, a.unpadded_bytes, a.reported_bytes) == (103079215104, 2516582400, 103079215104)
    assert (a.name, a.tag, a.kind, a.provenance) == (
        "custom-call.4",
        "output of custom-call.4@{}",
        "other",
        "computed",
    )


def test_one_buffer_that_is_an_operand() -> None:
    report = next(r for r in read(log("0.0.42.1_v5e_scan_nocrash_stderr0")) if r.source.line == 283)
    (a,) = report.allocations
    assert (a.name, a.tag, str(a.shape)) == (
        "bitcast_dynamic-update-slice_fusion.8",
        None,
        "f32[40,131072,1024]",
    )


def test_one_buffer_of_a_kernel() -> None:
    (a,) = only(log("0.0.42.1_v5e_pallas_smem")).allocations
    assert (a.kind, a.name) == ("scoped", "tpu_custom_call.1")
    assert a.tag is not None
    assert a.tag.startswith("input window allocation for operator input 0. The window shape is s32[1048576],")
    assert a.tag.endswith("single buffered.")


def test_scoped_vmem_names_the_instruction() -> None:
    (a,) = only(log("0.0.42.1_v5e_pallas_grid")).allocations
    assert (a.name, a.opcode, a.op_name) == (
        "tpu_custom_call.1",
        "custom-call",
        "jit(wrapped)/pallas_call",
    )
    assert (a.bytes, a.kind, a.shape) == (64 << 20, "scoped", None)
    (a,) = only(log("0.0.42.1_v5e_scoped_vmem_xla_mlp")).allocations
    assert (a.name, a.opcode, a.op_name) == ("fusion", "fusion", "jit(loss)/jvp()/dot_general")


def test_scoped_vmem_without_the_kernels_body() -> None:
    report = only(log("0.0.7_v5e_pallas_scoped_vmem"))
    (a,) = report.allocations
    assert a.label is not None
    assert a.label.endswith("source_line=218}")
    assert (a.source_file, a.source_line) == ("/home/user/project/progs.py", 218)
    for text in (a.label, report.message):
        assert "TUzv" not in text
    assert report.message.endswith("and limit 16.00M exceeded scoped vmem limit by 16.00M")


def test_remat_keeps_what_there_was_before() -> None:
    report = read(log("0.0.42.1_v5e_padded_b_409600_nocrash_stderr0"))[-1]
    assert report.notes[0] == "Before rematerialization: 37.50GiB."
    assert report.backend == "tpu"
    assert (report.source.line, report.source.end_line) == (21, 23)
    assert read(log("0.0.42.1_v5e_args_stderr1"))[-1].backend is None


def test_suppressed_failures_say_so() -> None:
    found = {r.source.line: r for r in read(log("0.0.42.1_v5e_scan_nocrash_stderr0"))}
    went_on = {line for line, r in found.items() if r.suppressed}
    assert went_on == {112, 115, 119}


@pytest.mark.parametrize("name", OWN)
def test_described_form(name: str) -> None:
    text, expected, numbers = OWN[name]
    report = only(text)
    assert report.space is not None
    assert (report.kind, report.source.format, report.space.name) == expected
    assert figures(report) == numbers
    assert report.truncated == (name == "cores, first half")


def test_an_expected_argument_and_the_given_one() -> None:
    text = (
        "XlaRuntimeError: INVALID_ARGUMENT: E0102: RuntimeProgramInputMismatch: Executable(jit_embed) expected "
        "parameter 17 of size 5242880 (bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}) but got buffer with incompatible "
        "size 1638400 (bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}): while running replica 0\n"
    )
    report = only(text)
    assert (report.kind, report.program, report.backend) == ("other", "jit_embed", "tpu")
    assert report.notes[0] == "Error code E0102 RuntimeProgramInputMismatch"
    expected, given_ = report.allocations
    assert (expected.bytes, expected.name, expected.label) == (5242880, "parameter 17", "expected")
    assert (given_.bytes, given_.unpadded_bytes, given_.label) == (1638400, 1638400, "given")


def test_an_argument_of_another_size_somewhere_else() -> None:
    report = only(
        "ERROR: LoadError: INVALID_ARGUMENT: Executable expected parameter 0 of size 4096 but got buffer with "
        "incompatible size 3840\n"
    )
    assert (report.program, report.backend) == (None, None)
    assert [int(a.bytes) for a in report.allocations] == [4096, 3840]


@pytest.mark.parametrize(
    "text",
    [
        "INTERNAL: RET_CHECK failure (platforms/xla/service/jellyfish/bounds_check.cc:717) "
        "allocation_size_words <= std::numeric_limits<int32_t>::max() 2415919104\nTensor: bf16[36,64,4096,8192]\n",
        "JaxRuntimeError: RET_CHECK ... allocation_size_words <= int32_max; 2415919104; bf16[36,64,4096,8192]\n",
    ],
)
def test_too_many_words(text: str) -> None:
    report = only(text)
    assert (report.kind, report.source.format) == ("other", "tpu-too-many-words")
    assert "This one has 2415919104 words." in report.notes
    (a,) = report.allocations
    assert (a.bytes, a.provenance) == (36 * 64 * 4096 * 8192 * 2, "computed")


def test_both_cores_are_parts_of_the_whole() -> None:
    report = only(OWN["cores"][0])
    assert [(a.label, int(a.bytes)) for a in report.allocations] == [
        ("TensorCore", parse_size("12.50G")),
        ("SparseCore", parse_size("88.25G")),
    ]
    assert report.target is not None
    assert report.target.name == "v5p"


# Texts whose every damage must leave the figures as they are.
WHOLE = {
    "short": log("0.0.50.1_v5e_mlp").splitlines(keepends=True)[31:],
    "early": log("0.0.7_v5e_padded_batchmat").splitlines(keepends=True)[31:],
    "buffer": log("0.0.42.1_v5p_pallas_scoped_vmem").splitlines(keepends=True)[31:],
    "operand": log("0.0.42.1_v5e_scan_nocrash_stderr0").splitlines(keepends=True)[282:],
    "scoped": log("0.0.42.1_v5e_pallas_grid").splitlines(keepends=True)[31:],
    "scoped, base64": log("0.0.7_v5e_pallas_scoped_vmem").splitlines(keepends=True)[31:],
    "remat": log("0.0.42.1_v5e_padded_b_409600_nocrash_stderr0").splitlines(keepends=True)[20:23],
} | {name: [text] for name, (text, _, _) in OWN.items()}


@pytest.mark.parametrize("how", [d for d in DAMAGE if not d.startswith("wrapped")])
@pytest.mark.parametrize("name", WHOLE)
def test_damage_changes_no_figure(name: str, how: str) -> None:
    text = "".join(WHOLE[name])
    whole, damaged = only(text), read(DAMAGE[how](text))
    assert len(damaged) == 1
    assert figures(damaged[0]) == figures(whole)
    assert damaged[0].kind == whole.kind
    assert damaged[0].program == whole.program
    assert [a.bytes for a in damaged[0].allocations] == [a.bytes for a in whole.allocations]


@pytest.mark.parametrize("name", ["short", "early", "buffer", "operand", "scoped", "scoped, base64", "remat"])
def test_broken_at_a_fixed_width(name: str) -> None:
    text = "".join(WHOLE[name])
    wrapped = DAMAGE["wrapped at 80"](text)
    lines = normalise(wrapped, 1, wrap_width(wrapped))
    (report,) = [report for reader in READERS for report in reader(lines, "x.log")]
    assert figures(report) == figures(only(text))


@pytest.mark.parametrize("name", WHOLE)
def test_garbage_between_the_words(name: str) -> None:
    """Another program's output, on a line of its own, in the middle of the sentence."""
    text = "".join(WHOLE[name])
    whole = figures(only(text))
    middle = text.find(" ", len(text) // 2)
    torn = text[:middle] + "\n[12/40] step 3 loss 2.5 1.2s/it\n" + text[middle + 1 :]
    found = read(torn)
    assert len(found) <= 2
    for report in found:
        assert figures(report).items() <= whole.items()


def test_the_long_reports_reader_leaves_these_alone() -> None:
    for name in ("short", "early", "buffer", "operand", "scoped", "scoped, base64", "remat"):
        assert list(read_tpu_oom(normalise("".join(WHOLE[name])), "x.log")) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "We ran out of memory on the train.\n",
        "Attempting to allocate 4 GPUs for pending jobs\n",
        "Attempting to allocate 1.28GB for batch operations, 3.9G free\n",
        "  %0 = memref.alloca() : memref<8xf32>\n",
        "CUDA out of memory. Tried to allocate 2.00 GiB\n",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 285212672 bytes.\n",
        "Ran out of memory in memory space hbm. Used 1.00G of 7.48G hbm.\n",
    ],
)
def test_other_words_are_no_report(text: str) -> None:
    assert read(text) == []


SAMPLES = ["".join(text) for text in WHOLE.values()]
MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["cut", "drop", "join", "insert", "line"]), st.floats(0, 1), st.integers(1, 60)
    ),
    min_size=1,
    max_size=4,
)
GARBAGE = [
    "\n",
    " ",
    "\nI1130 16:26:51.312982     393 a.cc:1] Step 12 took 3.5s\n",
    "\\n",
    "\x1b[31m",
    "(",
    "=== 9G ",
]


def mutate(text: str, changes: list[tuple[str, float, int]]) -> str:
    for what, where, size in changes:
        at = int(where * len(text))
        if what == "cut":
            text = text[:at]
        elif what == "drop":
            text = text[:at] + text[at + size :]
        elif what == "join":
            text = text[:at] + text[at:].replace("\n", " ", 1)
        elif what == "insert":
            text = text[:at] + GARBAGE[size % len(GARBAGE)] + text[at:]
        else:
            text = text[:at] + "\n" + text[at:]
    return text


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SAMPLES), MUTATIONS)
def test_mutations(text: str, changes: list[tuple[str, float, int]]) -> None:
    assert_sound(mutate(text, changes))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(SAMPLES), min_size=2, max_size=4), MUTATIONS)
def test_several_in_one_text(texts: list[str], changes: list[tuple[str, float, int]]) -> None:
    assert_sound(mutate("".join(texts), changes))


@pytest.mark.parametrize("text", SAMPLES, ids=list(WHOLE))
def test_cut_at_any_byte(text: str) -> None:
    if len(text) > 3000:
        text = text[:300] + text[-600:]
    for at in range(len(text)):
        assert_sound(text[:at])


@pytest.mark.parametrize(
    "text",
    [
        "Ran out of memory in memory space vmem while allocating on stack for " + "QUJD" * 500_000,
        "Ran out of memory " * 50_000,
        "Scoped allocation with size " * 50_000,
        "Attempting to allocate " * 50_000,
        "Allocation (size=1) would exceed memory " * 30_000,
        "Error loading program '" * 50_000,
        "rematerialization limit " + " " * 500_000,
        "Executable(" * 100_000,
    ],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    start = time.perf_counter()
    read(text)
    assert time.perf_counter() - start < 10
