"""What lies in a dump folder: which files belong to which program, and what each file is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from xlamem.errors import NotAReportError, NotReadableError
from xlamem.report import Backend

_FILE = re.compile(
    r"(?:\d{10,}\.)?(module_\d+\.(.+?))(\.cl_\d+)?\."
    r"((?:sm_[\da-z.]+_)?gpu_|cpu_)?"
    r"(after_optimizations|before_optimizations|oom_intermediate_module|oom_top_memory_consuming_instructions"
    r"|target_arguments|gpu_target_config)(.*)"
)
_FOLDER = re.compile(r"(?:\d{10,}\.)?(module_\d+\.(.+?))(\.cl_\d+)?")

#: Stage and ending of a file's name -> what it is called here.
_ROLES = {
    ("after_optimizations", "-buffer-assignment.txt"): "assignment",
    ("after_optimizations", "-live-range.txt"): "live",
    ("after_optimizations", "-memory-usage-report.txt"): "usage",
    ("after_optimizations", ".txt"): "text",
    ("after_optimizations", ".hlo.pb"): "proto",
    ("after_optimizations", "_after_buffer_assignment.txt"): "fits",
    ("after_optimizations", "_after_buffer_assignment.hlo.pb"): "fits",
    ("after_optimizations", "_before_buffer_assignment.txt"): "unassigned text",
    ("after_optimizations", "_before_buffer_assignment.hlo.pb"): "unassigned proto",
    ("oom_intermediate_module", ".txt"): "oom",
    ("oom_intermediate_module", ".hlo.pb"): "oom",
    ("before_optimizations", ".txt"): "early text",
    ("before_optimizations", ".hlo.pb"): "early proto",
    # libtpu of 2024: its own list of the largest temporaries, in the form of its logs.
    ("oom_top_memory_consuming_instructions", ""): "list",
    ("target_arguments", ".txt"): "target",
    ("gpu_target_config", ".pbtxt"): "gpu target",
}


_EARLY = frozenset({"early text", "early proto"})
_ABOUT = frozenset({"target", "gpu target", "topology", "list"})
_PEAK_LIST = re.compile(r"\d+\.peak_memory_tensors\.txt")


@dataclass(slots=True)
class Dumped:
    """The files of one compile of one program: ``files`` by what they are."""

    module: str
    program: str
    build: str
    backend: Backend | None = None
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def has_memory(self) -> bool:
        """Whether any of the files says something about memory."""
        return bool(self.files.keys() - {"fits", "oom"} - _ABOUT)


def named(name: str) -> tuple[str | None, Backend | None]:
    """The program and the backend that the name of a dump's file tells, where it does."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None, None
    _, program, _, backend, stage, _ = match.groups()
    if backend is not None:
        return program, "cpu" if backend == "cpu_" else "gpu"
    # Stages after the backend's own work carry its name, but for libtpu's.
    return program, None if stage == "before_optimizations" else "tpu"


def scan(folder: Path) -> list[Dumped]:
    """The programs dumped into ``folder``, in the order of their numbers.

    Raises:
        NotReadableError: the folder cannot be listed.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise NotReadableError(f"{folder}: cannot be listed: {error.strerror or error}") from None
    found: dict[tuple[str, str], Dumped] = {}
    for name in names:
        match = _FILE.fullmatch(name)
        if match is None:
            continue
        module, program, build, _, stage, ending = match.groups()
        role = _ROLES.get((stage, ending))
        if role is None:
            continue
        dumped = found.setdefault((module, build or ""), Dumped(module, program, (build or "").lstrip(".")))
        dumped.files[role] = folder / name
        dumped.backend = named(name)[1] or dumped.backend
    for name in names:
        match = _FOLDER.fullmatch(name)
        if match is not None and (folder / name / "topology.pb").is_file():
            key = match[1], match[3] or ""
            if key in found:
                found[key].files["topology"] = folder / name / "topology.pb"
    return [dumped for dumped in _joined(list(found.values())) if dumped.has_memory]


def peak_lists(folder: Path) -> list[str]:
    """The names of libtpu's lists of the temporaries at a peak, which do not say of which program they are."""
    return sorted(name for name in os.listdir(folder) if _PEAK_LIST.fullmatch(name))


def _joined(dumps: list[Dumped]) -> list[Dumped]:
    """``dumps`` with those made one that are one compile: XLA may clone a module under a new number.

    The first number then has only what comes before compiling, the second only what comes after.
    """
    joined: list[Dumped] = []
    started: dict[tuple[str, str], Dumped] = {}
    for dumped in dumps:
        key = dumped.program, dumped.build
        early = started.pop(key, None)
        if early is not None and not dumped.files.keys() & _EARLY:
            joined.remove(early)
            dumped.files = {**early.files, **dumped.files}
            dumped.backend = dumped.backend or early.backend
        elif not dumped.files.keys() - _EARLY - _ABOUT:
            started[key] = dumped
        joined.append(dumped)
    return joined


def chosen(dumps: list[Dumped], module: str | None, folder: Path) -> list[Dumped]:
    """Those that ``module`` names: the whole name, the program's name, or part of either; all for None.

    Raises:
        NotAReportError: none does; the message lists those there are.
    """
    if module is None:
        return dumps
    exact = [d for d in dumps if module in (d.module, d.program, f"{d.module}.{d.build}")]
    part = exact or [d for d in dumps if module in f"{d.module}.{d.build}"]
    if not part:
        there = ", ".join(sorted({d.module for d in dumps}))
        raise NotAReportError(f"{folder}: no module {module!r}; there are: {there}")
    return part
