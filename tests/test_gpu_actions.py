"""What is advised, and that nothing is which the report does not support."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from xlamem.advice.gpu_actions import actions
from xlamem.readers.bfc import read_bfc
from xlamem.readers.cpu_lines import read_cpu_lines
from xlamem.readers.cuda_async import read_cuda_async
from xlamem.readers.gpu_driver import read_gpu_driver
from xlamem.readers.gpu_kernel import read_gpu_kernel
from xlamem.readers.gpu_lines import read_gpu_lines
from xlamem.readers.gpu_oom import read_gpu_oom
from xlamem.readers.lines import normalise
from xlamem.readers.not_xla import read_not_xla
from xlamem.readers.tensorflow import read_tensorflow
from xlamem.report import MemoryReport

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
READERS = (
    read_gpu_oom,
    read_bfc,
    read_cuda_async,
    read_gpu_driver,
    read_gpu_lines,
    read_gpu_kernel,
    read_cpu_lines,
    read_tensorflow,
    read_not_xla,
)


def reports(text: str) -> list[MemoryReport]:
    lines = normalise(text)
    return [report for reader in READERS for report in reader(lines, "x.log")]


def log(name: str) -> list[MemoryReport]:
    return reports((LOGS / name).read_text())


def names(report: MemoryReport) -> list[str]:
    return [advice.name for advice in actions(report)]


def test_temporaries_that_failed() -> None:
    report = log("gpu_buffer_assignment.log")[0]
    assert names(report)[:3] == ["remat", "microbatch", "slop-factor"]
    assert "donate" not in names(report)
    assert "2.54GiB" in actions(report)[0].text


def test_results_that_failed() -> None:
    report = log("gpu_rocm.log")[0]
    assert names(report)[0] == "donate"
    assert "remat" not in names(report)


def test_large_arguments() -> None:
    text = (LOGS / "gpu_rocm.log").read_text().replace("allocation:    6.00GiB", "allocation:   16.00GiB")
    assert "shard-arguments" in names(reports(text)[0])
    assert "shard-arguments" not in names(log("gpu_rocm.log")[0])


def test_the_sentence_alone_points_to_the_share_and_to_a_compile() -> None:
    report = log("gpu_bare.log")[0]
    assert names(report) == ["mem-fraction", "who-else", "see-the-program"]
    share = actions(report)[0]
    assert (share.how, share.verified, share.provenance) == (
        "XLA_CLIENT_MEM_FRACTION=0.92",
        False,
        "estimated",
    )
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" in share.text


def test_fragmentation_first() -> None:
    report = next(r for r in log("gpu_bfc_dump.log") if r.kind == "fragmentation")
    assert names(report)[:3] == ["fragmentation", "platform-allocator", "free-arrays"]
    assert "1.40GiB" in actions(report)[0].text


def test_a_device_that_did_not_give_what_was_allowed() -> None:
    text = (
        (LOGS / "gpu_bfc_dump.log").read_text().replace("available bytes: 0", "available bytes: 2500000000")
    )
    report = next(r for r in reports(text) if r.source.format == "bfc-dump")
    assert {"who-else", "tensorflow-beside"} <= set(names(report))
    assert "mem-fraction" not in names(report)


def test_the_driver_and_the_context() -> None:
    for report in log("gpu_driver.log"):
        expected = ["host-limit", "host-free"] if report.kind == "host" else ["who-else", "preallocation"]
        assert names(report) == expected


def test_others_hold_the_card() -> None:
    (report,) = (r for r in log("gpu_cuda_async.log") if r.source.format == "cuda-async")
    assert "who-else" not in names(report)
    assert report.space is not None
    crowded = replace(report, spaces=(replace(report.space, free=0, used=1 << 30),))
    assert names(crowded)[0] == "who-else"


def test_nccl_and_constants_and_the_compilers_limit() -> None:
    limit, constant, nccl, *_ = log("gpu_lines.log")
    assert names(limit) == ["donate", "shard-arguments"]
    assert names(constant)[0] == "constants"
    assert names(nccl) == ["mem-fraction", "who-else", "nccl-log"]
    assert actions(nccl)[0].how == "XLA_CLIENT_MEM_FRACTION=0.7"


def test_shared_memory_has_nothing_to_do_with_preallocation() -> None:
    for report in log("gpu_lines.log")[-3:]:
        assert names(report) == ["smaller-blocks", "num-stages", "no-triton"]
    assert "128.0KiB where a block can have 99.0KiB" in actions(log("gpu_lines.log")[-3])[0].text


@pytest.mark.parametrize(
    ("words", "name"), [("Autotuning failed: ", "autotuning"), ("cuGraphInstantiate: ", "cuda-graphs")]
)
def test_only_where_the_text_says_so(words: str, name: str) -> None:
    sentence = "Out of memory while trying to allocate 12.50GiB.\n"
    assert names(reports(words + sentence)[0])[0] == name
    assert name not in names(reports(sentence)[0])


def test_what_is_not_xlas() -> None:
    old, new, hip, cupy = log("gpu_pytorch.log")
    assert names(old) == ["not-xla", "fragmentation", "who-else", "preallocation"]
    assert names(new) == ["not-xla", "who-else", "preallocation"]
    assert names(hip) == names(cupy) == ["not-xla"]


def test_the_cpu_and_the_host() -> None:
    assert names(log("cpu_oom.log")[0]) == ["host-free", "is-it-the-gpu"]
    host = next(r for r in log("gpu_bare.log") if r.kind == "host")
    assert names(host) == ["host-limit", "host-free"]


def test_nothing_for_what_is_no_failure_and_for_tpus() -> None:
    benign = next(r for r in log("gpu_bare.log") if r.kind == "benign")
    assert actions(benign) == ()
    assert actions(replace(log("gpu_bare.log")[0], backend="tpu")) == ()
    assert actions(replace(log("gpu_bare.log")[0], spaces=())) == ()


def test_all_of_it_is_a_rule_of_thumb_with_a_name_of_its_own() -> None:
    for path in sorted(LOGS.glob("[cg]pu_*.log")):
        for report in log(path.name):
            found = actions(report)
            assert all(not a.verified and a.provenance == "estimated" for a in found)
            assert all(a.text.endswith(".") and a.saved is None for a in found)
            assert len(set(names(report))) == len(found)
