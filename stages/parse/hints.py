"""Hints that look at the program: which register was meant, which operand is of the wrong type, which targets have what
this one lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import lru_cache

from ir_format.diag import Diagnostic
from ir_format.typed import Final, TypeAlias
from stages.parse.sregs import SREGS

#: What the front end says of a program for a target.
Judge: TypeAlias = Callable[[bytes, str], Sequence[Diagnostic]]

_REG: Final = re.compile(r"\.reg\s+(?:\.v[24]\s+)?\.(\w+)\s+([^;]+);")
_NAME: Final = re.compile(r"\s*(%?[\w$]+)(?:<(\d+)>)?\s*")
_STATEMENT: Final = re.compile(r"\s*(?:[\w$]+:\s*)?(?:@!?%?[\w$]+\s+)?([a-z][\w.:]*)\s+([^;/]*)")
_TYPE: Final = re.compile(r"\.([busf]\d+|f16x2|bf16|bf16x2|pred)\b")
_SPECIAL: Final = frozenset([name.split(".")[0] for name in SREGS])
_MOST_OF_RANGE: Final = 256
#: Tried in this order for what a target lacks: the hint names the first of a line of targets that has it.
_TARGETS: Final = ("sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120", "sm_120a")
_LONGEST: Final = 5000  # lines of a program that is parsed again for other targets


def _declared(lines: Sequence[str]) -> list[tuple[str, int, str]]:
    """(name, how many of a range or 0, type) of all registers."""
    out = []
    for kind, names in _REG.findall("\n".join(lines)):
        for name in names.split(","):
            m = _NAME.fullmatch(name)
            if m:
                out.append((m[1], int(m[2] or 0), kind))
    return out


def nearest_register(name: str, lines: Sequence[str]) -> str:
    """The declared register whose name is the closest, '' where none is close."""
    known = {
        n
        for base, count, _ in _declared(lines)
        for n in ([f"{base}{k}" for k in range(min(count, _MOST_OF_RANGE))] if count else [base])
    }
    near = get_close_matches(name, sorted(known), 1, 0.7)
    return near[0] if near else ""


def _type_of(name: str, lines: Sequence[str]) -> str:
    for base, count, kind in _declared(lines):
        rest = name[len(base) :] if count and name.startswith(base) else ""
        if name == base or (rest.isdigit() and int(rest) < count):
            return kind
    return ""


def wrong_operand(line: str, lines: Sequence[str]) -> str:
    """Which register operand of a statement has not the type that its opcode names, '' where that is not seen. Only for
    instructions whose operands all have that type."""
    from stages.parse import table

    m = _STATEMENT.match(line)
    types = _TYPE.findall(m[1]) if m else []
    if m is None or len(types) != 1:
        return ""
    base = m[1].split(".")[0]
    if base not in table.names() or ".wide" in m[1]:
        return ""
    if any(o.role not in ("d", "s") or o.type == "U" for row in table.rows(base) for o in row.operands):
        return ""
    wanted = types[0]
    for n, operand in enumerate(re.split(r"\s*,\s*", m[2].strip()), 1):
        kind = _type_of(operand, lines) if operand.startswith("%") else ""
        if operand.startswith("%") and not kind and operand.split(".")[0] not in _SPECIAL:
            near = nearest_register(operand, lines)
            return f"operand {n}, {operand}, is not declared" + (f": did you mean {near}?" if near else "")
        if kind and not _fits(kind, wanted):
            return f"operand {n}, {operand}, is .{kind}; {m[1]} wants .{wanted}"
    return ""


def _fits(kind: str, wanted: str) -> bool:
    """Whether a register of a type may replace another: of one size, and not an integer for a float."""
    if kind == "pred" or wanted == "pred":
        return kind == wanted
    size, other = re.sub(r"\D", "", kind), re.sub(r"\D", "", wanted)
    return size == other and ("b" in (kind[0], wanted[0]) or (kind[0] == "f") == (wanted[0] == "f"))


def allowing(message: str, lines: Sequence[str], number: int, judge: Judge) -> str:
    """Which other target takes a line that this one refuses: ``judge`` is asked about others until one does."""
    if len(lines) > _LONGEST:
        return ""
    return _allowing(message.partition(" not supported on")[0], "\n".join(lines), number, judge)


@lru_cache(maxsize=64)
def _allowing(start: str, text: str, number: int, judge: Judge) -> str:
    from ir_format.release import PTX_VERSIONS

    newest = max(PTX_VERSIONS)
    newer = re.sub(r"^\s*\.version\s+[\d.]+", f".version {newest[0]}.{newest[1]}", text, count=1, flags=re.M)
    for name in _TARGETS:
        other = re.sub(r"^(\s*\.target\s+)\w+", rf"\g<1>{name}", newer, count=1, flags=re.M)
        found = judge(other.encode("latin-1", "replace"), name)
        if not any(d.line == number and d.message.startswith(start) for d in found):
            return f"{name} has it: .target {name}, and -arch {name} or later" if name[-1] != "a" else f"{name} has it"
    return ""
