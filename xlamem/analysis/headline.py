"""The answer in one line: what ran out, on what, and by how much."""

from __future__ import annotations

from xlamem.report import MemoryReport, Space
from xlamem.units import format_size

_MEMORY = {"host": "host memory", "shared": "shared memory", "sflag": "SFLAG (semaphore memory)"}
_KIND_LESS = Space("hbm")


def headline(report: MemoryReport) -> str:
    """One sentence for any kind of report. Figures that the report does not have are not made up."""
    space = report.space or _KIND_LESS
    if report.kind == "success":
        return _success(report, space)
    if report.kind == "remat-warning":
        return _remat(report, space)
    if report.kind == "benign":
        more = f"{format_size(space.requested)} more" if space.requested is not None else "more memory"
        return f"No failure: XLA wanted {more} for speed and did without."
    if report.kind == "kernel-shared-memory":
        return f"{_kernel(space)}{_program(report)}."
    if report.kind == "not-xla":
        name = "CuPy" if report.source.format.startswith("cupy") else "PyTorch"
        return f"{name} (not XLA) ran out of {_memory(report, space)}{_figures(space)}."
    if report.severity == "warning":
        return f"Warning: {report.message[0].lower()}{report.message[1:].rstrip('.')}."
    if report.source.format == "gpu-context":
        card = f" (a card of {format_size(space.capacity)})" if space.capacity else ""
        return f"The GPU could not be opened: out of memory{card}."
    if report.source.format == "nccl":
        return "NCCL ran out of GPU memory, outside of what XLA manages."
    if report.fits and space.used is not None and space.capacity is not None:
        free = format_size(int(space.capacity) - int(space.used))
        return (
            f"Would fit{_program(report)}: {format_size(space.used)} used of {format_size(space.capacity)} "
            f"{_memory(report, space)}, {free} free."
        )
    if report.kind == "other" or not report.spaces:
        return f"{report.message.rstrip('.')}."
    return f"Out of {_memory(report, space)}{_chip(report)}{_program(report)}{_figures(space, report)}."


def _success(report: MemoryReport, space: Space) -> str:
    if space.used is None:
        return f"Compiled{_program(report)}: no figure of what it uses of its memory is in the input."
    text = f"uses {format_size(space.used)}"
    if report.provenance == "estimated":
        text = f"needs at most about {format_size(space.used)}"
        if report.fits is not True:
            unsure = f", so it may or may not fit {format_size(space.capacity)}" if space.capacity else ""
            return f"Estimated{_program(report)}: {text} of {_memory(report, space)}{_chip(report)}{unsure}."
    if space.capacity is None:
        return f"Compiled{_program(report)}: {text} of {_memory(report, space)}{_chip(report)}."
    free = int(space.capacity) - int(space.used)
    return (
        f"Fits{_program(report)}: {text} of {format_size(space.capacity)} {_memory(report, space)}{_chip(report)}, "
        f"{format_size(free)} free."
    )


def _remat(report: MemoryReport, space: Space) -> str:
    what = "Warning: XLA could not save enough memory by computing results again"
    figures = ""
    if space.used is not None and space.goal is not None:
        figures = f": {format_size(space.used)} are left where {format_size(space.goal)} were wanted"
    return f"{what}{_program(report)}{figures}. By itself this is no failure."


def _memory(report: MemoryReport, space: Space) -> str:
    if space.name == "hbm" and report.backend != "tpu":
        return "GPU memory" if report.backend == "gpu" else "device memory"
    return _MEMORY.get(space.name, space.name.upper())


def _chip(report: MemoryReport) -> str:
    if report.target is None:
        return " on a TPU" if report.backend == "tpu" else ""
    name = f"TPU {report.target.name}" if report.backend == "tpu" else report.target.name
    return f" on {name}" + (" (inferred)" if report.target.inferred else "")


def _program(report: MemoryReport) -> str:
    return f", program {report.program}" if report.program else ""


def _kernel(space: Space) -> str:
    """What a kernel wants of a block's shared memory."""
    if space.requested is None:
        most = f", which is {format_size(space.capacity)}" if space.capacity else ""
        return f"A kernel asks for more shared memory than a block can have{most}"
    limit = f", and a block can have {format_size(space.capacity)}" if space.capacity else ""
    return f"A kernel asks for {format_size(space.requested)} of shared memory{limit}"


def _figures(space: Space, report: MemoryReport | None = None) -> str:
    """The figures that this report has: what was asked of an allocator, or what was used of a capacity."""
    if space.requested is not None:
        form = report.source.format if report else ""
        asked = f"{format_size(space.requested)} asked for"
        return f": {'one buffer, ' if form == 'tpu-one-buffer' else ''}{asked}{_room(space)}"
    if report is not None and report.source.format == "tpu-early-abort" and space.used and space.capacity:
        return f": an early estimate of {format_size(space.used)}, of {format_size(space.capacity)} available"
    used = space.used
    least = ""
    if used is None:
        used, least = space.total if space.total is not None else space.program, "at least "
    if used is None:
        known = sum(int(a.bytes) for a in report.in_space(space.name)) if report else 0
        limit = f" of {format_size(space.capacity)}" if space.capacity else ""
        return (
            f": what is listed takes {format_size(known)}{limit}"
            if known
            else ", by how much is not in the input"
        )
    text = f": {least}{format_size(used)} used"
    if space.capacity is not None:
        text += f" of {format_size(space.capacity)}"
    if not space.excess:
        return text
    # A difference of rounded figures is no more than about right.
    about = "" if space.over is not None else "about "
    return text + f", over by {about}{format_size(space.excess)}"


def _room(space: Space) -> str:
    """What a run-time allocator had."""
    parts = []
    if space.free is not None:
        parts.append(f"{format_size(space.free)} free")
    if space.largest_free is not None:
        parts.append(
            f"{format_size(space.largest_free)} of it in one piece"
            if parts
            else f"{format_size(space.largest_free)} free in one piece"
        )
    if space.reservable is not None and space.free is not None and space.largest_free is None:
        parts.append(f"{format_size(space.reservable)} reservable")
    if not parts and space.used is not None and space.capacity is not None:
        parts.append(f"{format_size(space.used)} of {format_size(space.capacity)} in use")
    if not parts and space.capacity is not None:
        parts.append(f"there are {format_size(space.capacity)}")
    if not parts and space.total is not None:
        parts.append(f"the whole program needs {format_size(space.total)}")
    return "; " + ", ".join(parts) if parts else ""
