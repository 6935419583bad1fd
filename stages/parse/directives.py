"""Directives that are neither declarations nor code: headers, performance hints, debug data."""

from __future__ import annotations

import re

from ir_format.ptx import PtxDirectives, PtxFile, PtxFixup, PtxLoc, PtxModule, PtxSection
from stages.parse import expr
from stages.parse.scan import Scanner
from stages.parse.symbols import FunctionState
from stages.parse.table import Gate
from stages.parse.targets import Target

_TRIPLES = {".maxntid": "maxntid", ".reqntid": "reqntid", ".reqnctapercluster": "reqnctapercluster"}
_NUMBERS = {
    ".minnctapersm": "minnctapersm", ".maxnctapersm": "maxnctapersm", ".maxnreg": "maxnreg",
    ".local_maxnreg": "local_maxnreg",
    ".maxclusterrank": "maxclusterrank", ".abi_preserve": "abi_preserve",
    ".abi_preserve_control": "abi_preserve_control",
}  # fmt: skip
_FLAGS = {".explicitcluster": "explicitcluster", ".blocksareclusters": "blocksareclusters", ".noreturn": "noreturn"}
_DATA = {".b8": 1, ".b16": 2, ".b32": 4, ".b64": 8, ".u8": 1, ".u16": 2, ".u32": 4, ".u64": 8}
MAX_SECTION = 1 << 28


_GATES = {
    ".minnctapersm": Gate(20), ".reqntid": Gate(21), ".maxnreg": Gate(13), ".maxntid": Gate(13),
    ".noreturn": Gate(64, 30),
    ".explicitcluster": Gate(78, 90), ".reqnctapercluster": Gate(78, 90), ".maxclusterrank": Gate(78, 90),
    ".blocksareclusters": Gate(90, 90), ".local_maxnreg": Gate(88), ".abi_preserve": Gate(90, 80),
    ".abi_preserve_control": Gate(90, 80), ".pragma": Gate(20),
}  # fmt: skip
_OF_FUNCTIONS = frozenset((".noreturn", ".local_maxnreg", ".abi_preserve", ".abi_preserve_control", ".pragma"))


def performance(s: Scanner, out: PtxDirectives, target: Target | None = None, entry: bool = False) -> None:
    """The directives between a function's signature and its body."""
    while s.kind == "dot":
        word = s.tok
        line = s.line
        known = word in _TRIPLES or word in _NUMBERS or word in _FLAGS
        if known and (word in _OF_FUNCTIONS) == entry:
            s.syntax_error()
        if target is not None and word in _GATES:
            for text in target.refuses(_GATES[word], "Feature", word):
                s.notes.error(text, line)
        if word in _TRIPLES:
            s.next()
            values = [_number(s)]
            while len(values) < 3 and s.accept(","):
                values.append(_number(s))
            if any(v <= 0 for v in values):
                if word != ".reqnctapercluster":
                    s.notes.error(f"Positive non-zero value expected for {word[1:]}", s.line)
                values = [max(v, 1) for v in values]
            setattr(out, _TRIPLES[word], tuple(values + [1] * (3 - len(values))))
        elif word in _NUMBERS:
            s.next()
            value = _number(s)
            if word == ".maxnctapersm":
                s.notes.error("Deprecated feature: '.maxnctapersm directive' not supported as of PTX version 2.1", line)
            if value == 0 and word in (".maxnreg", ".local_maxnreg", ".minnctapersm", ".maxnctapersm"):
                s.notes.error(f"Positive non-zero value expected for {word[1:]}", line)
            if word in (".maxclusterrank", ".reqnctapercluster") and out.reqnctapercluster is not None:
                s.notes.error(
                    "Conflicting directives: .reqnctapercluster and .maxclusterrank cannot both be specified", line
                )
            setattr(out, _NUMBERS[word], value)
        elif word in _FLAGS:
            s.next()
            setattr(out, _FLAGS[word], True)
        elif word == ".pragma":
            texts = pragma(s)
            if target is not None:
                check_pragmas(s, texts, line, target, "function")
            out.pragmas += texts
        else:
            return


def pragma(s: Scanner) -> tuple[str, ...]:
    """`.pragma "a", "b";`"""
    s.next()
    texts = [s.expect("str")[1:-1]]
    while s.accept(","):
        texts.append(s.expect("str")[1:-1])
    s.expect(";")
    return tuple(texts)


_PRAGMAS = frozenset(("nounroll", "abi_param_reg"))
_PRAGMAS_OF_BODIES = frozenset(("used_bytes_mask", "enable_smem_spilling", "frequency"))


_PRAGMA_GATES = {"used_bytes_mask": Gate(83), "enable_smem_spilling": Gate(87), "frequency": Gate(90)}


def check_pragmas(
    s: Scanner, texts: tuple[str, ...], line: int, target: Target, scope: str, entry: bool = True
) -> None:
    """Reports pragmas that are out of place, or (when code is made) unknown: an error at module level, else a
    warning."""
    for text in texts:
        word, _, rest = text.partition(" ")
        if word in _PRAGMAS_OF_BODIES:
            if scope != "body":
                s.notes.error(f"Pragma '{text}' is allowed only within function scope", line)
            else:
                for refusal in target.refuses(_PRAGMA_GATES[word], "Feature", word):
                    s.notes.error(refusal, line)
                if word == "enable_smem_spilling" and not entry:
                    s.notes.error(f"Pragma '{word}' cannot be specified for device functions", line)
                if word != "enable_smem_spilling" and target.real:
                    _pragma_number(s, text, word, rest)
        elif word == "abi_param_reg" and len(rest.split()) < 2 and target.real:
            s.notes.error(f"Unexpected number of arguments specified for pragma {word}", 0)
        elif word not in _PRAGMAS and target.real:
            if scope == "module":
                s.notes.error(f"Pragma '{text}' not supported", 0)
            else:
                s.notes.warning(f"Pragma '{text}' unsupported", 0)


def _pragma_number(s: Scanner, text: str, word: str, rest: str) -> None:
    """The number that a pragma must have."""
    if not rest:
        s.notes.error(f"Argument(s) to pragma '{word}' cannot be empty", 0)
    elif not re.fullmatch(r" *(?:0[xX][0-9a-fA-F]+|[0-9]+) *", rest):
        s.notes.error(f"Invalid value '{rest}' specified for .pragma '{text}'", 0)


def conflicts(s: Scanner, d: PtxDirectives, line: int) -> None:
    """What is wrong with an entry's directives taken together; reported at the end of its body (measured)."""
    if d.maxntid is not None and d.reqntid is not None:
        s.notes.error("Conflicting directives: .maxntid and .reqntid cannot both be specified", line)
    if d.minnctapersm is not None and d.maxntid is None and d.reqntid is None:
        s.notes.warning(".minnctapersm is ignored when neither .maxntid nor .reqntid is specified.", line)
    if d.blocksareclusters and (d.reqntid is None or d.reqnctapercluster is None):
        s.notes.error(".reqntid and .reqnctapercluster directive(s) required for directive '.blocksareclusters'", line)


def file(s: Scanner, module: PtxModule, known: set[int]) -> None:
    """`.file index "name" [, timestamp, size]`; `known` are the indices so far."""
    s.next()
    index = _number(s)
    name = s.expect("str")[1:-1]
    if index in known:
        s.notes.error(f"Duplicate file index #{index}", s.line)
    stamp = length = None
    if s.accept(","):
        stamp = int(expr.int_literal(s).number) if s.kind == "int" else s.syntax_error()
        s.expect(",")
        length = int(expr.int_literal(s).number) if s.kind == "int" else s.syntax_error()
    known.add(index)
    module.files.append(PtxFile(index, name, stamp, length))


def _number(s: Scanner) -> int:
    if s.kind != "int":
        s.syntax_error()
    return expr.word_literal(s)


def loc(s: Scanner, fs: FunctionState) -> None:
    """`.loc file line column [, function_name label [+ offset], inlined_at file line column]`"""
    line = s.line
    s.next()
    place = (_number(s), _number(s), _number(s))
    if s.kind != ",":
        fs.loc = fs.add_loc(place, PtxLoc(*place))
        return
    s.next()
    if s.kind != "id" or s.tok != "function_name":
        s.syntax_error()
    s.next()
    label = s.tok
    if s.kind not in ("id", "dot"):
        s.syntax_error()
    s.next()
    offset = 0
    if s.accept("+"):
        offset = _number(s)
    s.expect(",")
    if s.kind != "id" or s.tok != "inlined_at":
        s.syntax_error()
    s.next()
    outer = (_number(s), _number(s), _number(s))
    at = fs.loc_index.get(("at", *outer))
    if at is None:
        if outer not in fs.loc_index:
            s.notes.error(
                (
                    f"Source location {outer[0]} {outer[1]} {outer[2]} used in inlined_at directive must be "
                    f"used in a preceding .loc directive"
                ),
                line,
            )
        at = fs.add_loc(outer, PtxLoc(*outer))
    key = (*place, label, offset, at)
    fs.loc = fs.add_loc(key, PtxLoc(*place, at, (label, offset)))
    fs.loc_index[("at", *place)] = fs.loc


def section(s: Scanner, module: PtxModule) -> None:
    """`.section name { data }`"""
    line = s.line
    s.next()
    name = s.tok
    if s.kind not in ("dot", "id"):
        s.syntax_error()
    s.next()
    s.expect("{")
    data = bytearray()
    fixups: list[PtxFixup] = []
    labels: list[tuple[str, int]] = []
    while s.kind != "}":
        if s.kind == "id":
            labels.append((s.tok, len(data)))
            s.next()
            s.expect(":")
            continue
        width = _DATA.get(s.tok) if s.kind == "dot" else None
        if width is None:
            s.syntax_error()
        s.next()
        while True:
            for value in expr.run(s, MAX_SECTION):
                data.extend((value & ((1 << 8 * width) - 1)).to_bytes(width, "little"))
            _datum(s, data, width, fixups)
            if not s.accept(","):
                break
        if len(data) > MAX_SECTION:
            s.notes.fatal("Section too large", line)
    s.expect("}")
    module.sections.append(PtxSection(name, bytes(data), tuple(fixups), tuple(labels), line))


def _datum(s: Scanner, data: bytearray, width: int, fixups: list[PtxFixup]) -> None:
    if s.kind in ("id", "dot"):
        symbol = s.tok
        if symbol in _DATA:
            s.syntax_error()
        s.next()
        minus = ""
        addend = 0
        if s.kind == "-":
            for text in s.target.refuses(Gate(75), "Feature", "labels1 - labels2 expression in .section"):
                s.notes.error(text, s.line)
            s.next()
            minus = s.tok
            if s.kind not in ("id", "dot"):
                s.syntax_error()
            s.next()
        if s.kind == "+":
            s.next()
            addend = _number(s)
        fixups.append(PtxFixup(len(data), width, symbol, addend, minus))
        data.extend(bytes(width))
        return
    negative = s.kind == "-"
    line = s.line
    value = expr.integer(s)
    if negative:
        for text in s.target.refuses(Gate(75), "Feature", "Negative numbers in dwarf section"):
            s.notes.error(text, line)
    data.extend((value & ((1 << 8 * width) - 1)).to_bytes(width, "little"))
