"""HLO text: ``*after_optimizations.txt``, ``as_text()``, or any piece of it.

One regular expression takes a line apart and every distinct shape and metadata text is parsed once: a module
of 20 MB is a hundred thousand lines of a few hundred shapes.
"""

from __future__ import annotations

import re

from xlamem.readers.hlo_module import CALLERS, Computation, HloModule, Instruction, shape_of

# A tuple's shape ends at the first ") " before a letter: inside it, ")" is followed by "," or "}".
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = (\(.*?\)|[^\s(]\S*) ([a-z][\w\-]*)\(")
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .* )?\{")
_HEADER = re.compile(r"HloModule ([^\s,]+)")
_ALIAS = re.compile(r"\{[\d, ]*\}: \((\d+), ")
_TABLE = re.compile(r"FileNames|FunctionNames|FileLocations|StackFrames")
_TABLE_ROW = re.compile(r'(\d+) (?:"((?:[^"\\]|\\.)*)"|\{(.*)\})')
_PAIR = re.compile(r"(\w+)=(\d+)")

_QUOTED = r'"((?:[^"\\]|\\.)*)" ?'
_METADATA = re.compile(
    rf"metadata=\{{(?:op_type={_QUOTED})?(?:op_name={_QUOTED})?(?:source_file={_QUOTED})?"
    r"(?:source_line=(\d+) ?)?(?:source_\w+=\d+ ?)*(?:stack_frame_id=(\d+))?"
)
_NAME = re.compile(r"%([\w.\-]+)")
_INDEX = re.compile(r"\bindex=(\d+)")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|branch_computations|true_computation|false_computation"
    r"|called_computations)=(?:\{([^}]*)\}|%?([\w.\-]+))"
)

_Where = tuple[str | None, str | None, int | None]


def sniff(name: str, head: bytes) -> bool:
    """Whether a file with these first bytes is HLO text. The name does not count."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"HloModule ")


def parse(text: str) -> HloModule:
    """The module that ``text`` spells. Never raises: what cannot be read is named in ``notes``."""
    reader = _Reader()
    for line in text.split("\n"):
        reader.line(line)
    return reader.finish()


class _Reader:
    """The state of a reading: one line after another."""

    def __init__(self) -> None:
        self.module = HloModule("")
        self.current: Computation | None = None
        self.table: dict[int, str] | None = None
        self.tables: dict[str, dict[int, str]] = {}
        self.skipped = 0
        self.places: dict[str, _Where] = {}
        self.unterminated = False

    def line(self, line: str) -> None:
        """Take one line."""
        match = _INSTRUCTION.match(line)
        if match is not None and self.current is not None:
            self._instruction(line, match)
            return
        text = line.strip()
        if not text:
            return
        if text.startswith("}"):
            self.current = None
        elif text.endswith("{") and (opening := _COMPUTATION.fullmatch(text)) is not None:
            self._open(opening)
        elif text.startswith("HloModule "):
            self._header(text)
        elif self.current is not None:
            # A large literal may run over lines; anything else is damage.
            self.skipped += 0 if text[0] in "{}()0123456789-,." else 1
        elif _TABLE.fullmatch(text):
            self.table = self.tables.setdefault(text, {})
        elif self.table is not None and (row := _TABLE_ROW.match(text)) is not None:
            self.table[int(row[1])] = row[2] if row[2] is not None else row[3]

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

    def _instruction(self, line: str, match: re.Match[str]) -> None:
        root, name, shape, opcode = match.groups()
        start = match.end()
        end = _closing(line, start)
        number = None
        operands: tuple[str, ...] = ()
        called: tuple[str, ...] = ()
        if opcode == "parameter":
            inside = line[start:end]
            number = int(inside) if inside.isdecimal() else None
        elif opcode != "constant":
            inside = line[start:end]
            operands = tuple(_NAME.findall(inside)) if "%" in inside else _bare_names(inside)
            if opcode == "get-tuple-element":
                found = _INDEX.search(line, end)
                number = int(found[1]) if found is not None else None
            elif opcode in CALLERS:
                called = _called(line, end)
        spot = line.find("metadata={", end)
        where: _Where = (None, None, None) if spot < 0 else self._where(line, spot)
        current = self.current
        assert current is not None
        current.instructions.append(
            Instruction(name, opcode, shape_of(shape), current.name, operands, called, number, *where)
        )
        if root:
            current.root = name

    def _where(self, line: str, spot: int) -> _Where:
        match = _METADATA.match(line, spot)
        if match is None:
            return None, None, None
        where = self.places.get(match[0])
        if where is None:
            _, op_name, source, row, frame = match.groups()
            if source is None and frame is not None:
                source, row = self._frame(int(frame))
            where = _unescape(op_name), _unescape(source), int(row) if row is not None else None
            self.places[match[0]] = where
        return where

    def _frame(self, frame: int) -> tuple[str | None, str | None]:
        """File and line of a stack frame: StackFrames -> FileLocations -> FileNames."""
        location = self._row("StackFrames", frame).get("file_location_id", "0")
        place = self._row("FileLocations", int(location))
        file = self.tables.get("FileNames", {}).get(int(place.get("file_name_id", "0")))
        return file, place.get("line")

    def _row(self, table: str, row: int) -> dict[str, str]:
        return dict(_PAIR.findall(self.tables.get(table, {}).get(row, "")))


def _closing(line: str, start: int) -> int:
    """Where the parenthesis opened just before ``start`` closes; the end of the line if it does not."""
    end = line.find(")", start)
    if end < 0:
        return len(line)
    depth = line.count("(", start, end)
    while depth:
        after = line.find(")", end + 1)
        if after < 0:
            return len(line)
        depth += line.count("(", end, after) - 1
        end = after
    return end


def _bare_names(inside: str) -> tuple[str, ...]:
    """Operands printed without "%", as libtpu's text was in 2024: "Arg_0.1, /*index=1*/constant.11"."""
    if not inside:
        return ()
    return tuple(part.rpartition("*/")[2].strip().rpartition(" ")[2] for part in inside.split(","))


def _called(line: str, start: int) -> tuple[str, ...]:
    names: list[str] = []
    for many, one in _CALLED.findall(line, start):
        names.extend(part.strip().lstrip("%") for part in many.split(",")) if many else names.append(one)
    return tuple(names)


def _unescape(text: str | None) -> str | None:
    if text is None or "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text)
