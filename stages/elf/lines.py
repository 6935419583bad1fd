"""Line tables of ``-lineinfo``: ``.debug_line`` (source positions), ``.debug_str`` (names of inlined functions),
``.nv_debug_line_sass`` (lines of the PTX text) and ``.nv_debug_ptx_txt`` (that text).

Format (measured): DWARF 2 line programs, minimum instruction 1, line base -5, line range 14, opcode base 10; one
sequence per kernel in file order. A row inside an inlined call follows extended opcode 0x90 with two numbers: the row
of its call site (1 = first of the sequence) and the place of the function's name in ``.debug_str``; 0 0 ends that. File
times and sizes are written as 0: a stage reads no files and no clock.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence

from ir_format.diag import CompileError
from ir_format.late_pattern import late_pattern
from ir_format.model import Module
from ir_format.record import Record, fresh
from ir_format.typed import Final
from stages.elf.frame import uleb
from stages.elf.image import Strings
from stages.elf.layout import Kernel

LINE_BASE: Final = -5
LINE_RANGE: Final = 14
OPCODE_BASE: Final = 10
STANDARD_LENGTHS: Final = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))

COPY: Final = 1
ADVANCE_PC: Final = 2
ADVANCE_LINE: Final = 3
SET_FILE: Final = 4
END_SEQUENCE: Final = 1
SET_ADDRESS: Final = 2
INLINED_CALL: Final = 0x90

MAX_DEPTH: Final = 256  # of inlining; a deeper chain is a loop

Loc = tuple[int, int, int, int, str]


class Lines(Record):
    """A section's bytes and the places of its kernel addresses: (section offset, kernel)."""

    data: bytearray = fresh(default_factory=bytearray)
    relocs: list[tuple[int, str]] = fresh(default_factory=list)


class LineInfo(Record):
    """All sections of ``-lineinfo``. ``strings`` is empty without inlined calls; ``sass`` and ``text`` without PTX text
    in the module."""

    source: Lines
    strings: bytes
    sass: Lines | None
    text: bytes
    text_name: str


def sleb(value: int) -> bytes:
    """Signed LEB128."""
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)


class Program:
    """A line program under construction."""

    __slots__ = ("body", "context", "file", "line", "pc", "relocs", "rows")

    def __init__(self) -> None:
        self.body = bytearray()
        self.relocs: list[tuple[int, str]] = []
        self.pc = self.file = self.line = self.rows = 0
        self.context = (0, 0)

    def begin(self, kernel: str) -> None:
        """Start the sequence of a kernel; the address is left to a relocation."""
        self.body += bytes((0, 9, SET_ADDRESS))
        self.relocs.append((len(self.body), kernel))
        self.body += bytes(8)
        self.pc, self.file, self.line, self.rows, self.context = 0, 1, 1, 0, (0, 0)

    def row(self, pc: int, file: int, line: int, context: tuple[int, int] = (0, 0)) -> None:
        """Add a row. Addresses must not fall."""
        if file != self.file or not self.rows:
            self.body += bytes((SET_FILE,)) + uleb(file)
            self.file = file
        if context != self.context:
            operands = uleb(context[0]) + uleb(context[1])
            self.body += b"\0" + uleb(1 + len(operands)) + bytes((INLINED_CALL,)) + operands
            self.context = context
        ahead, step = pc - self.pc, line - self.line
        if not LINE_BASE <= step < LINE_BASE + LINE_RANGE:
            self.body += bytes((ADVANCE_LINE,)) + sleb(step)
            step = 0
        opcode = OPCODE_BASE + (step - LINE_BASE) + LINE_RANGE * ahead
        if opcode > 255:
            self.body += bytes((ADVANCE_PC,)) + uleb(ahead)
            opcode = OPCODE_BASE + (step - LINE_BASE)
        self.body += bytes((COPY,)) if step == 0 and opcode == OPCODE_BASE - LINE_BASE else bytes((opcode,))
        self.pc, self.line = pc, line
        self.rows += 1

    def end(self, pc: int) -> None:
        """Close the sequence at address ``pc``."""
        self.body += bytes((ADVANCE_PC,)) + uleb(pc - self.pc) + bytes((0, 1, END_SEQUENCE))

    def finish(self, tables: bytes) -> Lines:
        """The section: header with directory and file ``tables``, then the program."""
        prefix = struct.pack("<BBbBB", 1, 1, LINE_BASE, LINE_RANGE, OPCODE_BASE) + STANDARD_LENGTHS + tables
        head = struct.pack("<IHI", 6 + len(prefix) + len(self.body), 2, len(prefix)) + prefix
        return Lines(bytearray(head) + self.body, [(at + len(head), name) for at, name in self.relocs])


def _tables(files: Sequence[tuple[int, str]]) -> tuple[bytes, dict[int, int]]:
    """Directory and file tables, and the number that each ``.file`` index has in them."""
    folders: dict[str, int] = {}
    rows = bytearray()
    number: dict[int, int] = {}
    for index, path in sorted(files):
        if index in number or "\0" in path:
            raise CompileError(f"file {index} is there twice, or has an illegal name")
        folder, _, name = path.rpartition("/")
        place = folders.setdefault(folder, len(folders) + 1) if folder else 0
        number[index] = len(number) + 1
        rows += _encode(name) + b"\0" + uleb(place) + b"\0\0"
    return b"".join(_encode(f) + b"\0" for f in folders) + b"\0" + bytes(rows) + b"\0", number


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise CompileError(f"name {text!r} is not valid text") from None


def _locs(kernel: Kernel) -> Mapping[str, Sequence[Loc]]:
    return {f.name: f.locs for f in kernel.unit.functions}


class _Source:
    """Rows of source positions, with call sites where functions were inlined."""

    def __init__(self, files: dict[int, int]) -> None:
        self.files = files
        self.program = Program()
        self.sites: dict[int, int] = {}  # position of a call site -> its row, in this function
        self.strings = Strings()
        self.strings.data.clear()  # this table does not begin with an empty string

    def kernel(self, k: Kernel) -> None:
        locs = _locs(k)
        started = False
        for f in k.functions:
            table = locs.get(f.code.name, ())
            last, first = -1, True
            self.sites = {}
            for at, _, loc in sorted(f.code.lines):
                if loc < 0 or loc == last:
                    continue
                if loc >= len(table) or not 0 <= at < f.end - f.begin:
                    raise CompileError(f"function '{f.code.name}' of unit '{k.name}': line table names no place of it")
                if not started:
                    self.program.begin(k.name)
                    started = True
                # code before the first position (the frame, parameters) belongs to it, as in ptxas's table
                self._row(f.begin + (0 if first else at), table, loc, 0)
                last, first = loc, False
        if started:
            self.program.end(len(k.text))

    def _row(self, pc: int, table: Sequence[Loc], loc: int, depth: int) -> None:
        file, line, _, site, name = table[loc]
        if depth > MAX_DEPTH or site >= len(table) or not 0 <= line < 1 << 32:
            raise CompileError("illegal source position")
        context = (0, 0)
        if site >= 0:
            row = self.sites.get(site)
            if row is None:
                self._row(pc, table, site, depth + 1)
                row = self.sites[site] = self.program.rows
            context = (row, self.strings.add(name))
        self.program.row(
            pc, self.files.get(file, file), line, context
        )  # without a .file the number itself is there, as in ptxas's table


def _sass(kernels: Sequence[Kernel], text_name: str) -> Lines:
    """``text_name``: of the section that the table names, in objects."""
    program = Program()
    file = 1 if text_name else 0
    for k in kernels:
        program.begin(k.name)
        last = 0
        for f in k.functions:
            for at, line, _ in sorted(f.code.lines):
                if line <= 0 or line == last:
                    continue
                if not 0 <= at < f.end - f.begin or line >= 1 << 32:
                    raise CompileError(f"function '{f.code.name}' of unit '{k.name}': line table names no place of it")
                program.row(f.begin + at, file, line)
                last = line
        program.end(len(k.text))
    return program.finish(b"\0" + (text_name.encode() + bytes(4) if text_name else b"") + b"\0")


# Lines of the PTX that ptxas blanks in its copy: comments, positions, files, and the bytes of debug sections.
_BLANK: Final = late_pattern(r"//|\.loc\b|\.file\b")
_DATA: Final = late_pattern(r"\.b(?:8|16|32|64)\b")


def ptx_copy(text: str) -> bytes:
    """The contents of ``.nv_debug_ptx_txt``: every line without indentation, each ended by NUL; line numbers stay those
    of the input."""
    out = []
    in_section = False
    for line in text.replace("\0", "").splitlines():
        line = line.lstrip()
        if line.startswith(".section"):
            in_section = True
        elif in_section and line.startswith("}"):
            in_section = False
        if _BLANK.match(line) or (in_section and _DATA.match(line)):
            line = ""
        out.append(line)
    return b"".join(_encode(line) + b"\0" for line in out)


TEXT: Final = ".nv_debug_ptx_txt"


def line_info(module: Module, kernels: Sequence[Kernel], linked: bool = False) -> LineInfo:
    """All sections, for ``kernels`` in file order. ``linked``: the copy of the PTX text gets a name of its own, the
    checksum of that text, for a linker joins sections of one name (measured)."""
    tables, files = _tables(module.files)
    source = _Source(files)
    for k in kernels:
        source.kernel(k)
    text = module.attrs.get("ptx_text")
    # With inlined calls four zeros more end the header (measured on ptxas, their meaning unknown): nvdisasm reads no
    # such table without them, and readers of plain DWARF 2 warn of them where they are not wanted.
    name = f"{TEXT}.{zlib.adler32(_encode(text))}" if linked and isinstance(text, str) else ""
    return LineInfo(
        source.program.finish(tables + bytes(4) if source.strings.data else tables),
        bytes(source.strings.data),
        _sass(kernels, name) if isinstance(text, str) else None,
        ptx_copy(text) if isinstance(text, str) else b"",
        name or TEXT,
    )
