"""A log, whatever else is in it: every form of report is looked for in every stretch that may hold one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import NamedTuple

from xlamem.readers.input import Input
from xlamem.readers.lines import Lines, normalise, wrap_width
from xlamem.report import MemoryReport

Reader = Callable[[Lines, str], Iterator[MemoryReport]]


class Form(NamedTuple):
    """One form of message: the function that reads it, and words of which its text holds at least one.

    The module is loaded only for a text with one of the words in it. They are single words, since a space
    may have become a line's end.
    """

    module: str
    function: str
    words: tuple[str, ...]

    def reader(self) -> Reader:
        """The function itself."""
        found: Reader = getattr(import_module(f"xlamem.readers.{self.module}"), self.function)
        return found


#: A new form is a new module and one line here.
FORMS = (
    Form(
        "tpu_oom",
        "read_tpu_oom",
        ("memory", "usage", "requirement", "Largest", "Allocation", "Unpadded"),
    ),
    Form("tpu_lines", "read_tpu_lines", ("HBM", "Aborting", "TensorCore")),
    Form("tpu_one_buffer", "read_tpu_one_buffer", ("(size=", "allocation_size_words")),
    Form("scoped_vmem", "read_scoped_vmem", ("allocating", "Scoped", "Insufficient")),
    Form("sparsecore", "read_sparsecore", ("words)",)),
    Form("tpu_mismatch", "read_tpu_mismatch", ("Executable",)),
    Form("tpu_runtime", "read_tpu_runtime", ("Attempting", "allocatable")),
    Form("remat", "read_remat", ("rematerialization", "Can't")),
    Form("usage_in_log", "read_usage_in_log", ("Memory Space:", "Total bytes used:")),
    Form("gpu_oom", "read_gpu_oom", ("trying", "ordinal", "allocate request", "BufferAssignment", "Peak")),
    Form("bfc", "read_bfc", ("trying", "BFCAllocator", "Chunks", "in-use", "Stats:")),
    Form("cuda_async", "read_cuda_async", ("cuMemAllocAsync",)),
    Form("gpu_driver", "read_gpu_driver", ("failed", "pinned", "CtxRetain", "cuCtxCreate", "cuInit")),
    Form("gpu_kernel", "read_gpu_kernel", ("hared",)),
    Form("gpu_lines", "read_gpu_lines", ("NCCL", "input/output", "Failed")),
    Form("memory_stats", "read_memory_stats", ("_size_in_bytes",)),
    Form("cpu_lines", "read_cpu_lines", ("allocating",)),
    Form("tensorflow", "read_tensorflow", ("OOM", "[Op:")),
    Form("not_xla", "read_not_xla", ("Tried", "cupy")),
)


def read_log(opened: Input) -> Iterator[MemoryReport]:
    """Every report in the log, in the order of the text, each as often as it is told.

    Raises:
        NotReadableError: the input is binary.
    """
    for first_line, text in opened.windows():
        yield from _read_text(text, first_line, opened.name)


def _read_text(text: str, first_line: int, name: str) -> list[MemoryReport]:
    lines = normalise(text, first_line)
    reports = _read_forms(lines, name)
    # Perhaps the text was broken at a fixed width, with the prefixes or before they came; believe that only if
    # more is understood then.
    others: list[Lines] = []
    if (width := wrap_width(text)) is not None:
        others.append(normalise(text, first_line, width))
    if (inner := wrap_width(lines.text)) is not None and inner != width:
        others.append(normalise(text, first_line, ends=True).joined(inner))
    for other in others:
        again = _read_forms(other, name)
        if _understood(again) > _understood(reports):
            reports = again
    return reports


def _read_forms(lines: Lines, name: str) -> list[MemoryReport]:
    found: list[MemoryReport] = []
    for part in lines.by_speaker():
        for form in FORMS:
            if any(word in part.text for word in form.words):
                found.extend(_with_host(report, part) for report in form.reader()(part, name))
    found.sort(key=lambda report: report.source.line or 0)
    return found


def _with_host(report: MemoryReport, lines: Lines) -> MemoryReport:
    """``report`` with the rank, host or process that stands before its first line."""
    who = lines.who[bisect_left(lines.numbers, report.source.line or 0)] if report.source.line else ""
    return replace(report, hosts=(who,)) if who else report


def _understood(reports: list[MemoryReport]) -> tuple[int, int]:
    """How much of the text made sense: facts found less lines not understood, then the length of the labels.

    A report that was told in one piece is better than the same in two.
    """
    facts = labels = 0
    for report in reports:
        facts -= 12
        for a in report.allocations:
            facts += 2 + (a.shape is not None) + (a.kind != "other")
            labels += len(a.label or "")
        for space in report.spaces:
            facts += sum(value is not None for value in space.figures().values())
        facts -= 3 * len(report.unparsed)
    return facts, labels
