"""``*-live-range.txt``: the program in order, and from where to where each value is needed.

::

    HloLiveRange (max 153):
      InstructionSequence:
        0:ws_6_.1
      BufferLiveRange:
        copy-start{0}:1-28

The file's own list of what is live at its peak is left unread: it knows neither padding nor memory spaces.
libtpu of 2024 prints the same at the end of ``*-buffer-assignment.txt``.
"""

from __future__ import annotations

import re

from xlamem.readers.assigned import LiveRanges
from xlamem.readers.buffer_assignment import index_of

_START = re.compile(r"^HloLiveRange \(max (\d+)\):", re.MULTILINE)
_STEP = re.compile(r"(\d+):([\w.\-]+)")
_RANGE = re.compile(r"([\w.\-]+)(\{[\d,]*\})?(?: \(phi\))?:(\d+)-(\d+)")


def sniff(name: str, head: bytes) -> bool:
    """Whether a file with these first bytes is a live-range file."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"HloLiveRange (max ")


def parse(text: str) -> LiveRanges | None:
    """The live ranges in ``text``, which may stand after other things; None if there are none."""
    start = _START.search(text)
    if start is None:
        return None
    sequence: list[str] = []
    ranges: dict[tuple[str, tuple[int, ...]], tuple[int, int]] = {}
    part = ""
    skipped = 0
    for line in text[start.end() :].split("\n"):
        line = line.strip()
        if not line:
            continue
        if line in ("InstructionSequence:", "BufferLiveRange:"):
            part = line
        elif line.startswith("Live ranges at "):
            part = line
            break
        elif part == "InstructionSequence:" and (step := _STEP.fullmatch(line)) is not None:
            # Positions are counted on; a line that is missing must not shift the rest.
            position = int(step[1])
            if len(sequence) <= position < len(sequence) + 1000:
                sequence.extend("" for _ in range(position - len(sequence)))
                sequence.append(step[2])
            else:
                skipped += 1
        elif part == "BufferLiveRange:" and (match := _RANGE.fullmatch(line)) is not None:
            ranges[match[1], index_of(match[2])] = int(match[3]), int(match[4])
        else:
            skipped += 1
    truncated = not part.startswith("Live ranges at ")
    notes = []
    if truncated:
        notes.append("the live ranges break off: the timeline is not complete")
    elif skipped:
        notes.append(f"{skipped} lines of the live ranges could not be read")
    return LiveRanges(tuple(sequence), ranges, True, tuple(notes), truncated)
