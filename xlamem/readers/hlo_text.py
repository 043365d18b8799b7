"""HLO text: ``*after_optimizations.txt``, ``as_text()``, or any piece of it.

One regular expression takes a line apart and every distinct shape and metadata text is parsed once: a module
of 20 MB is a hundred thousand lines of a few hundred shapes.
"""

from __future__ import annotations

import re

from xlamem.readers import garbage
from xlamem.readers.hlo_module import CALLERS, Computation, HloModule, Instruction, sized

# One line: an instruction, or anything else (the last group). A tuple's shape ends at the first ") " before
# a letter: inside it, ")" is followed by "," or "}". Operands are matched along where no parenthesis stands
# among them; the group after them is ")" then.
_LINE = re.compile(
    r"^(?:[ \t]+(ROOT )?%?([\w.\-]+) = (\(.*?\)|[^\s(]\S*) ([a-z][\w\-]*)\(([^()\n]*)(\)?)(.*)|(.+))$",
    re.MULTILINE,
)
_CHUNK = 1_000_000
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) [({]")
_HEADER = re.compile(r"HloModule ([^\s,]+)")
_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+), ")
_TABLE = re.compile(r"FileNames|FunctionNames|FileLocations|StackFrames")
_TABLE_ROW = re.compile(r'(\d+) (?:"((?:[^"\\]|\\.)*)"|\{(.*)\})')
_PAIR = re.compile(r"(\w+)=(\d+)")

_FIELD = re.compile(r'\s*(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\{[^}]*\}|[^\s}"]+))')
_NAME = re.compile(r"%([\w.\-]+)")
_PARENTHESIS = re.compile(r"[()]")
_INDEX = re.compile(r"\bindex=(\d+)")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|branch_computations|true_computation|false_computation"
    r"|called_computations)=(?:\{([^}]*)\}|%?([\w.\-]+))"
)

_Where = tuple[str | None, str | None, int | None]
_NOWHERE: _Where = (None, None, None)


def sniff(name: str, head: bytes) -> bool:
    """Whether a file with these first bytes is HLO text. The name does not count."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"HloModule ")


def parse(text: str) -> HloModule:
    """The module that ``text`` spells. Never raises: what cannot be read is named in ``notes``."""
    reader = _Reader()
    with garbage.paused():
        reader.read(text)
    return reader.finish()


class _Reader:
    """The state of a reading: one line after another."""

    def __init__(self) -> None:
        self.module = HloModule("")
        self.current: Computation | None = None
        self.table: dict[str, str] | None = None
        self.tables: dict[str, dict[str, str]] = {}
        self.skipped = 0
        self.places: dict[str, _Where] = {}

    def read(self, text: str) -> None:
        """Take all lines, a few thousand at a time."""
        start = 0
        while start < len(text):
            end = text.find("\n", start + _CHUNK)
            end = len(text) if end < 0 else end
            self._lines(_LINE.findall(text, start, end))
            start = end

    def _lines(self, lines: list[tuple[str, ...]]) -> None:
        """Take lines. The loop runs once for every instruction of a module, so it is kept flat."""
        places = self.places
        fused = self.module.fused
        current = self.current
        new = tuple.__new__
        for root, name, shape_text, opcode, inside, closed, rest, other in lines:
            if other or current is None:
                self._other(other)
                current = self.current
                continue
            if not closed:
                inside, rest = _split(inside + rest)
            number = None
            operands: tuple[str, ...] = ()
            called: tuple[str, ...] = ()
            if opcode == "parameter":
                number = int(inside) if inside.isdecimal() else None
            elif opcode != "constant":
                if inside[:1] == "%" and "/*" not in inside:
                    operands = tuple(inside[1:].split(", %"))
                else:
                    operands = _operands(inside)
                if opcode == "get-tuple-element":
                    found = _INDEX.search(rest)
                    number = int(found[1]) if found is not None else None
                elif opcode == "fusion":
                    spot = rest.find("calls=") + 6
                    if spot >= 6:
                        called = (rest[spot:].partition(",")[0].lstrip("%"),)
                        fused.add(called[0])
                elif opcode in CALLERS:
                    called = _called(rest)
            spot = rest.find("metadata={")
            if spot < 0:
                op_name = file = row = None
            else:
                stop = rest.find(", backend_config=", spot)
                key = rest[spot:stop] if stop >= 0 else rest[spot:]
                where = places.get(key)
                if where is None:
                    where = places[key] = self._where(key)
                op_name, file, row = where
            shape, size = sized(shape_text)
            current.instructions.append(
                # Half the time of Instruction(...), which is a function in Python.
                new(
                    Instruction,
                    (name, opcode, shape, size, current.name, operands, called, number, op_name, file, row),
                )
            )
            if root:
                current.set_root(name, opcode)

    def _other(self, line: str) -> None:
        """Take a line that is no instruction, or stands outside any computation."""
        text = line.strip()
        if not text:
            return
        if text.startswith("}"):
            self.current = None
        elif text.endswith("{") and (opening := _COMPUTATION.match(text)) is not None:
            self._open(opening)
        elif text.startswith("HloModule "):
            self._header(text)
        elif self.current is not None:
            # A large literal may run over lines; anything else is damage.
            self.skipped += 0 if text[0] in "{}()0123456789-,." else 1
        elif _TABLE.fullmatch(text):
            self.table = self.tables.setdefault(text, {})
        elif self.table is not None and (row := _TABLE_ROW.match(text)) is not None:
            self.table[row[1]] = row[2] if row[2] is not None else row[3]

    def finish(self) -> HloModule:
        """The module, once all lines are taken."""
        module = self.module
        notes = []
        module.truncated = self.current is not None or module.entry is None
        if module.entry is None and module.computations:
            # The entry is printed last; without it the longest computation is not the program.
            notes.append("the HLO text ends before its ENTRY computation")
        elif self.current is not None:
            notes.append(f"the HLO text ends inside computation {self.current.name}")
        if self.skipped:
            notes.append(f"{self.skipped} lines of the HLO text could not be read")
        module.notes = tuple(notes)
        return module

    def _header(self, text: str) -> None:
        match = _HEADER.match(text)
        if match is None:
            return
        if self.module.computations:
            self.skipped += 1
            return
        self.module.name = match[1]
        self.module.scheduled = "is_scheduled=true" in text
        if "input_output_alias={" in text:
            aliases = text[text.index("input_output_alias={") :]
            aliases = aliases.partition(", entry_computation_layout=")[0]
            self.module.aliased_parameters = frozenset(int(n) for n in _ALIAS.findall(aliases))

    def _open(self, match: re.Match[str]) -> None:
        if self.current is not None:
            self.skipped += 1
        self.table = None
        self.current = Computation(match[2])
        if match[1]:
            self.module.entry = match[2]
        self.module.computations[match[2]] = self.current

    def _where(self, text: str) -> _Where:
        """op_name, file and line of "metadata={...": its own, or its stack frame's."""
        facts: dict[str, str] = {}
        at = len("metadata={")
        while (field := _FIELD.match(text, at)) is not None:
            facts[field[1]] = field[3] if field[2] is None else _unescape(field[2]) or ""
            at = field.end()
        file, line = facts.get("source_file"), facts.get("source_line")
        if file is None and "stack_frame_id" in facts:
            file, line = self._frame(facts["stack_frame_id"])
        return facts.get("op_name"), file, int(line) if line is not None and line.isdecimal() else None

    def _frame(self, frame: str) -> tuple[str | None, str | None]:
        """File and line of a stack frame: StackFrames -> FileLocations -> FileNames."""
        place = self._row("FileLocations", self._row("StackFrames", frame).get("file_location_id"))
        file = self.tables.get("FileNames", {}).get(place.get("file_name_id", ""))
        return _unescape(file), place.get("line")

    def _row(self, table: str, row: str | None) -> dict[str, str]:
        return dict(_PAIR.findall(self.tables.get(table, {}).get(row or "", "")))


def _split(text: str) -> tuple[str, str]:
    """``text`` up to where the parenthesis opened just before it closes, and what comes after."""
    depth = 1
    for match in _PARENTHESIS.finditer(text):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return text[: match.start()], text[match.end() :]
    return text, ""


def _operands(inside: str) -> tuple[str, ...]:
    """The names of operands: "%a, /*index=5*/%b"; with types, "f32[8] %a"; bare, as libtpu's in 2024."""
    if not inside:
        return ()
    if "%" in inside:
        return tuple(_NAME.findall(inside))
    return tuple(part.rpartition("*/")[2].strip().rpartition(" ")[2] for part in inside.split(","))


def _called(rest: str) -> tuple[str, ...]:
    names: list[str] = []
    for many, one in _CALLED.findall(rest):
        names.extend(part.strip().lstrip("%") for part in many.split(",")) if many else names.append(one)
    return tuple(names)


def _unescape(text: str | None) -> str | None:
    if text is None or "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text)
