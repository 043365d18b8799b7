"""Dump folders (``xla_dump_to``) and single files of them.

A folder holds several programs, and of each more than one file says the same: the table of allocations is
in a text and in a proto. Whatever is there and whole is used, the text first; a report says what was not.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xlamem.errors import NotAReportError
from xlamem.readers import assignment_report, garbage, hlo_proto
from xlamem.readers.assigned import Assignment, LiveRanges
from xlamem.readers.assignment_report import Facts
from xlamem.readers.dump_files import Dumped, chosen, named, peak_lists, scan
from xlamem.readers.dump_target import device_of, target_of
from xlamem.readers.hlo_module import HloModule
from xlamem.report import MemoryReport, Source
from xlamem.units import format_size

if TYPE_CHECKING:
    from xlamem.readers.usage_report import UsageReport

# The other forms load where they are used: a single proto needs none of them, and each takes milliseconds.


@garbage.paused()
def read_dump(path: str | Path, module: str | None = None) -> list[MemoryReport]:
    """A report for each program dumped into a folder: what does not fit first, then the largest.

    Programs for the host's CPU beside those for a TPU or GPU are helpers of JAX and come last. ``module``
    picks programs by name or by part of it.

    Raises:
        NotReadableError: the folder cannot be listed.
        NotAReportError: no file of it is a dump that says something about memory, or no module is so named.
    """
    folder = Path(path)
    dumps = scan(folder)
    if not dumps:
        raise NotAReportError(
            f"{folder}: no XLA dump in this folder; looked for module_*-buffer-assignment.txt, *.hlo.pb "
            "and HLO text (to write one: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text')"
        )
    builds = {d.build for d in dumps}
    lists = peak_lists(folder)
    read = []
    for dumped in chosen(dumps, module, folder):
        report = _Dump(dumped).report()
        if report is not None:
            if len(builds) > 1:
                build = dumped.build or "one without a number"
                note = f"the folder holds dumps of {len(builds)} builds of the compiler; this is {build}"
                report = replace(report, notes=(*report.notes, note))
            if lists and dumped.backend == "tpu":
                note = (
                    f"{lists[0]}{f' and {len(lists) - 1} more like it' if len(lists) > 1 else ''} in the folder: "
                    "libtpu's lists of the largest temporaries, which do not say of which program they are; the "
                    "table here has all of them"
                )
                report = replace(report, notes=(*report.notes, note))
            read.append((dumped, report))
    if not read:
        raise NotAReportError(
            f"{folder}: none of the dump's files can be read: empty, cut off or being written"
        )
    devices = any(d.backend in ("tpu", "gpu") for d in dumps)
    read.sort(
        key=lambda item: (
            devices and item[0].backend == "cpu",
            item[1].provenance == "estimated",
            item[1].fits is not False,
            -int(item[1].space.total or 0) if item[1].space is not None else 0,
        )
    )
    return [report for _, report in read]


def sniff(name: str, head: bytes) -> bool:
    """Whether :func:`read_bytes` should be asked about a file with this name and these first bytes."""
    from xlamem.readers import buffer_assignment, hlo_text, live_range, usage_report

    forms = (hlo_proto, hlo_text, buffer_assignment, live_range, usage_report)
    return name.endswith(".pb") or any(form.sniff(name, head) for form in forms)


@garbage.paused()
def read_bytes(name: str, data: bytes) -> MemoryReport | None:
    """The report of one file of a dump, told by its content; None if it is no such file.

    Raises:
        NotAReportError: it is one, and nothing in it can be used.
    """
    head = data[:4096]
    program, backend = named(os.path.basename(name))
    facts = Facts(Source(name, "dump"), program=program, backend=backend)
    if hlo_proto.sniff(name, head):
        proto = hlo_proto.read(data)
        facts = replace(_named(facts, proto.module), source=Source(name, "hlo-proto"), notes=proto.notes)
        if proto.assignment is not None and proto.assignment.allocations:
            return assignment_report.report(proto.assignment, proto.module, proto.live, facts)
        if proto.module is not None and proto.module.sequence:
            from xlamem.readers import hlo_estimate

            return hlo_estimate.report(proto.module, facts)
        raise NotAReportError(f"{name}: {'; '.join(proto.notes) or 'no HLO module in it'}")
    if name.endswith(".pb"):
        assignment = hlo_proto.read_assignment(data)
        if assignment is None:
            return None
        return assignment_report.report(assignment, None, None, facts)
    from xlamem.readers import buffer_assignment, hlo_estimate, hlo_text, live_range, usage_report

    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if buffer_assignment.sniff(name, head):
        facts = replace(facts, source=Source(name, "buffer-assignment"))
        found = buffer_assignment.parse(text)
        if not found.allocations:
            raise NotAReportError(f"{name}: a buffer assignment without a single allocation; is it cut off?")
        return assignment_report.report(found, None, live_range.parse(text), facts)
    if hlo_text.sniff(name, head):
        module = hlo_text.parse(text)
        if not module.sequence:
            raise NotAReportError(
                f"{name}: HLO text, but {'; '.join(module.notes) or 'without instructions'}"
            )
        return hlo_estimate.report(module, replace(_named(facts, module), source=Source(name, "hlo-text")))
    if usage_report.sniff(name, head):
        usage = usage_report.parse(text)
        if usage is not None and usage.totals:
            return usage_report.to_report(usage, replace(facts, source=Source(name, "memory-usage-report")))
    if live_range.sniff(name, head):
        raise NotAReportError(
            f"{name}: live ranges alone say when values are needed, not how large they are; "
            "give the whole dump folder"
        )
    return None


def _named(facts: Facts, module: HloModule | None) -> Facts:
    """``facts`` with what the module tells: its name, and by its tiles that it is for a TPU."""
    if module is None:
        return facts
    tiled = any(
        part.layout is not None and part.layout.tiles
        for i in module.sequence[:200]
        if i.shape is not None
        for part in i.shape.leaves()
    )
    backend = facts.backend or ("tpu" if tiled else None)
    return replace(facts, program=module.name or facts.program, backend=backend)


class _Dump:
    """The files of one compile, read as far as they can be; ``notes`` say what could not be used."""

    def __init__(self, dumped: Dumped) -> None:
        self.dumped = dumped
        self.notes: list[str] = []
        self._proto: hlo_proto.ProtoContents | None = None

    def report(self) -> MemoryReport | None:
        """The best report that the files give; None if they give none."""
        if "list" in self.dumped.files:
            self.notes.append(
                f"{self.dumped.files['list'].name} in the folder: the compiler's own list of the largest "
                "temporaries, which the table here has too"
            )
        assignment, live = self._assignment()
        module = self._module()
        usage = self._usage()
        live = self._live() or live
        device = device_of(self.dumped.files)
        facts = Facts(
            source=Source(str(self._main_file()), "dump"),
            program=self.dumped.program,
            backend=self.dumped.backend,
            target=target_of(device),
            capacity=None if device is None else device.allowed,
            fits=self._fits(),
        )
        if assignment is not None and assignment.allocations:
            if usage is not None:
                self._compare(assignment, usage)
            return assignment_report.report(assignment, module, live, replace(facts, notes=tuple(self.notes)))
        if assignment is None:
            self.notes.append(
                "no buffer assignment among the files: the compile is still running or ended early"
            )
        if usage is not None and usage.totals:
            from xlamem.readers import usage_report

            return usage_report.to_report(usage, replace(facts, notes=tuple(self.notes)))
        if module is None:
            module = self._module("unassigned text", "unassigned proto") or self._module(
                "early text", "early proto"
            )
        if module is None or not module.sequence:
            return None
        from xlamem.readers import hlo_estimate

        return hlo_estimate.report(module, replace(facts, notes=tuple(self.notes)))

    def _main_file(self) -> Path:
        files = self.dumped.files
        for role in ("assignment", "proto", "usage", "text"):
            if role in files:
                return files[role]
        return next(iter(files.values()))

    def _fits(self) -> bool | None:
        if "oom" in self.dumped.files:
            return False
        return True if "fits" in self.dumped.files else None

    def _bytes(self, role: str) -> bytes | None:
        """A file's content; None, with a note, where it is there but empty or cannot be read."""
        path = self.dumped.files.get(role)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError as error:
            self.notes.append(f"{path.name} cannot be read: {error.strerror or error}")
            return None
        if not data.strip():
            self.notes.append(f"{path.name} is empty: it may still be being written")
            return None
        return data

    def _text(self, role: str) -> str | None:
        data = self._bytes(role)
        return None if data is None else data.decode("utf-8", errors="replace")

    def _decoded(self) -> hlo_proto.ProtoContents:
        if self._proto is None:
            data = self._bytes("proto")
            self._proto = hlo_proto.ProtoContents() if data is None else hlo_proto.read(data)
            self.notes += [f"{self.dumped.files['proto'].name}: {note}" for note in self._proto.notes]
        return self._proto

    def _assignment(self) -> tuple[Assignment | None, LiveRanges | None]:
        """The table of allocations, from the text if it is whole; live ranges where they come with it."""
        from xlamem.readers import buffer_assignment, live_range

        text = self._text("assignment")
        found = None if text is None else buffer_assignment.parse(text)
        live = None if text is None else live_range.parse(text)
        if found is not None and found.allocations and not found.notes:
            return found, live
        decoded = self._decoded()
        if decoded.assignment is not None:
            if found is not None:
                self.notes.append("the text of the buffer assignment is damaged: its proto was used")
            return decoded.assignment, live or decoded.live
        return found, live

    def _module(self, text_role: str = "text", proto_role: str = "proto") -> HloModule | None:
        from xlamem.readers import hlo_text

        text = self._text(text_role)
        module = None if text is None else hlo_text.parse(text)
        if module is not None and not module.truncated:
            return module
        if proto_role == "proto":
            decoded = self._decoded().module
        else:
            data = self._bytes(proto_role)
            decoded = None if data is None else hlo_proto.read(data).module
        return decoded or module

    def _live(self) -> LiveRanges | None:
        from xlamem.readers import live_range

        text = self._text("live")
        found = None if text is None else live_range.parse(text)
        if found is not None and not found.truncated:
            return found
        if found is not None:
            self.notes += found.notes
        decoded = self._decoded().live if text is not None or "assignment" not in self.dumped.files else None
        return decoded or (found if found is not None and found.ranges else None)

    def _usage(self) -> UsageReport | None:
        from xlamem.readers import usage_report

        text = self._text("usage")
        return None if text is None else usage_report.parse(text)

    def _compare(self, assignment: Assignment, usage: UsageReport) -> None:
        """Say so if the compiler's own total is another: two compiles, or allocations that are missing."""
        # The form of 2024 counts all memory spaces together.
        ours = sum(a.bytes for a in assignment.allocations if usage.old or a.color == 0)
        theirs = usage.totals.get("hbm")
        if theirs is not None and theirs != ours:
            self.notes.append(
                f"the memory usage report says {format_size(theirs)} ({theirs} B), the buffer assignment "
                f"adds up to {format_size(ours)} ({ours} B): the files are of two compiles, "
                "or one is not whole"
            )
