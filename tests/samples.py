"""Explanations made by hand, for tests of the outputs: they depend on no reader and no analysis."""

from __future__ import annotations

from xlamem.finding import Advice, Check, Explanation, Finding, Fit
from xlamem.report import Allocation, MemoryReport, Source, Space, Target, Unparsed
from xlamem.shape import Shape
from xlamem.units import Size, parse_size

GIB = 1 << 30
MIB = 1 << 20


def size(text: str) -> Size:
    return parse_size(text)


def allocation(
    text: str,
    shape: str | None = None,
    unpadded: str | None = None,
    kind: str = "temp",
    op_name: str | None = None,
    name: str | None = None,
    label: str | None = None,
    source_file: str | None = None,
    source_line: int | None = None,
    space: str = "hbm",
) -> Allocation:
    return Allocation(
        space=space,
        kind=kind,
        bytes=size(text),
        unpadded_bytes=None if unpadded is None else size(unpadded),
        reported_bytes=size(text),
        shape=None if shape is None else Shape.parse(shape),
        op_name=op_name,
        name=name,
        label=label,
        source_file=source_file,
        source_line=source_line,
    )


def padded() -> Explanation:
    """A TPU v2 that ran out: one padded tensor, a copy in another layout, and small change."""
    report = MemoryReport(
        kind="hbm",
        severity="error",
        source=Source("oom.log", "tpu-oom-report", 58, 164),
        message="Ran out of memory in memory space hbm. Used 19.39G of 7.48G hbm.",
        backend="tpu",
        target=Target("v2", inferred=True),
        program="jit_step",
        fits=False,
        spaces=(
            Space(
                "hbm",
                capacity=size("7.48G"),
                used=size("19.39G"),
                over=size("11.90G"),
                total=size("19.90G"),
                reserved=size("529.00M"),
                program=size("19.39G"),
                temps=size("19.39G"),
                constants=size("36.0K"),
                unpadded=size("12.82G"),
                padded=size("19.38G"),
                fragmentation=size("10.31M"),
                utilization=0.661,
            ),
            Space("vmem", capacity=16 * MIB, used=3 * MIB),
        ),
        allocations=(
            allocation(
                "12.50G",
                "f32[409600,1,64,64]{0,1,3,2:T(2,128)}",
                "6.25G",
                op_name="jit(step)/jit(main)/transpose(jvp(UNet))/encoder_block_3/conv_general_dilated",
                source_file="/home/someone/projects/unet/model/layers.py",
                source_line=212,
            ),
            allocation("6.25G", "f32[409600,1,64,64]{0,3,2,1}", "6.25G", name="copy.1516"),
            allocation(
                "640.00M", "bf16[10,64,64,64,64]{2,1,0,4,3:T(8,128)(2,1)}", "320.00M", name="reshape.753"
            ),
            allocation(
                "9.0K", "bf16[3,3,1,1]{3,2,1,0:T(4,128)(2,1)}", "18", "constant", label="constant literal"
            ),
            allocation("4.0K", kind="reserved", label="profiler"),
        ),
        notes=("The size of the arguments is not known.",),
    )
    return Explanation(
        report=report,
        headline="HBM of v2 ran out: 19.39GiB of 7.48GiB, over by 11.90GiB",
        verdict="One padded tensor and its copy in another layout hold nearly all of it.",
        findings=(
            Finding("padding", "6.56GiB is tile padding, 6.25GiB of it in one convolution.", int(6.56 * GIB)),
            Finding("layout-copies", "A copy of 6.25GiB only changes a layout; both are alive at once."),
        ),
        checks=(
            Check("temps", True, "HLO temp 19.39GiB = padded 19.38GiB + fragmentation 10.31MiB"),
            Check("utilization", True, "66.1% = unpadded / padded"),
            Check("rows", False, "the items add up to 19.42GiB, more than the 19.39GiB of the program"),
        ),
        fits=(
            Fit("v4", True, int(19.39 * GIB), int(30.75 * GIB), "reported"),
            Fit("v3", False, int(19.39 * GIB), int(15.48 * GIB), "reported"),
            Fit("h100", True, int(12.82 * GIB), 80 * GIB, "estimated"),
            Fit("t4", True, int(12.82 * GIB), 16 * GIB, "estimated"),
        ),
        advice=(
            Advice(
                "unit-axis",
                "Drop axis 1, which has size 1: the tile then lies on axes of 64.",
                how="x = jnp.squeeze(x, axis=1)",
                before=size("12.50G"),
                after=size("6.25G"),
                safe=True,
                about=0,
            ),
            Advice(
                "dtype",
                "Keep it in bfloat16.",
                how="x = x.astype(jnp.bfloat16)\ny = f(x)",
                before=size("12.50G"),
                after=size("6.25G"),
                verified=True,
                safe=False,
                value_error=0.004,
                provenance="compiled",
                about=0,
            ),
            Advice("order", "Order the axes so that 64 lies on sublanes.", before=9216, after=18, about=3),
            Advice("remat", "Recompute instead of storing.", provenance="estimated"),
        ),
    )


def short(severity: str = "warning") -> Explanation:
    """A report of one line."""
    return Explanation(
        MemoryReport(
            kind="remat-warning",
            severity="warning" if severity == "warning" else "info",
            source=Source("oom.log", "tpu-remat", 12, 12),
            message="Can't reduce memory use",
        ),
        headline="Rematerialization stopped at 9.00GiB, above its limit of 8.00GiB",
        verdict="",
    )


HOSTILE = "\x1b[31m[bold red]<script>alert('1')</script>|`@you`\r\n=cmd()\u202etxt.exe\u2066\x9b\udcff\u200b"


def hostile() -> Explanation:
    """A report whose every text tries to get out of the output it is put into."""
    bad = Allocation(
        space="hbm",
        kind=f"temp{HOSTILE}",
        bytes=4096,
        unpadded_bytes=1024,
        shape=Shape.parse("f32[2,128]{1,0:T(8,128)}"),
        name=HOSTILE,
        opcode=HOSTILE,
        op_name=f"=cmd(){HOSTILE}",
        label=f"+{HOSTILE}",
        tag=f"@{HOSTILE}",
        source_file=f"-{HOSTILE}",
        source_line=1,
        owner=f"\t{HOSTILE}",
    )
    report = MemoryReport(
        kind="hbm",
        severity="error",
        source=Source(HOSTILE, "tpu-oom-report", 1, 2),
        message=HOSTILE,
        target=Target(HOSTILE),
        program=HOSTILE,
        fits=False,
        spaces=(Space("hbm", capacity=1024, used=4096, over=3072), Space(HOSTILE, capacity=1, used=1)),
        allocations=(bad,),
        truncated=True,
        times=3,
        notes=(HOSTILE,),
        unparsed=tuple(Unparsed(n, HOSTILE) for n in range(1, 8)),
    )
    return Explanation(
        report,
        headline=HOSTILE,
        verdict=HOSTILE,
        findings=(Finding(HOSTILE, HOSTILE, 1),),
        checks=(Check(HOSTILE, False, HOSTILE), Check(HOSTILE, True, HOSTILE)),
        fits=(Fit(HOSTILE, True, 1, 1, "reported"),),
        advice=(Advice(HOSTILE, HOSTILE, how=f"```\n{HOSTILE}", before=4096, after=1024, about=0),),
    )
