"""Forms that compute from registers to registers: arithmetic, logic, comparisons, conversions, moves, video."""

from __future__ import annotations

import random

from stages.interpret.rows import BITS
from stages.parse.match import type_name
from stages.parse.table import OperandSpec, Row
from tests.cosim.forms.base import Form, load, opcode_text, register, store

CARRY = ("addc", "subc", "madc")
PARTS = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
MASKS = {
    "2": ("", ".h0", ".h1", ".h10"),
    "4": ("", ".b0", ".b1", ".b10", ".b2", ".b20", ".b21", ".b210", ".b3", ".b32", ".b321", ".b3210"),
}
IMMEDIATES = (0x96, 0xE8, 0xCA, 0x1B, 0x3F, 0x80)
RESULT, PREDICATE = 40, 40


class Operands:
    """Collects operands with their sources, results and set-up lines."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sources: list[str] = []
        self.lines: list[str] = []
        self.results: list[tuple[str, str]] = []

    def source(self, kind: str) -> str:
        """A register loaded with a value of a kind."""
        k = len(self.sources)
        self.lines.append(load(kind, k, k))
        self.sources.append(kind)
        if BITS.get(kind, 32) == 128:
            self.sources.append("b64")
            return f"%q{k}"
        return register(kind, k)

    def byte(self) -> str:
        """An 8-bit register loaded with a value."""
        k = len(self.sources)
        self.lines.append(f"ld.global.u8 %b{k}, [%in+{k * 8}];")
        self.sources.append("b8")
        return f"%b{k}"

    def result(self, kind: str, reg: str) -> str:
        """A register whose value is a result."""
        self.results.append((kind, reg))
        if reg[1] == "q":
            self.results.append(("b64", ""))
        return reg

    def vector(self, kind: str, n: int) -> str:
        """A vector of sources."""
        return "{" + ", ".join([self.source(kind) for _ in range(n)]) + "}"

    def vector_result(self, kind: str, n: int, first: int = RESULT) -> str:
        """A vector of results."""
        return "{" + ", ".join([self.result(kind, register(kind, first + k)) for k in range(n)]) + "}"

    def stores(self) -> list[str]:
        """Lines that store the results."""
        return [store(kind, reg, k) for k, (kind, reg) in enumerate(self.results) if reg]

    def kinds(self) -> list[str]:
        """Kinds of the results."""
        return [kind for kind, _ in self.results]


def _simd_part(rng: random.Random, lanes: str) -> str:
    """A selector over the lanes of both sources."""
    if rng.random() < 0.4:
        return ""
    n = int(lanes)
    return f".{'h' if n == 2 else 'b'}" + "".join([str(rng.randrange(2 * n)) for _ in range(n)])


def _vector_length(mods: list[str]) -> int:
    return next((int(m[1]) for m in mods if m in ("v2", "v4", "v8")), 0)


def kind_of(spec: OperandSpec, types: tuple[str, ...]) -> str:
    """The kind of value of an operand."""
    if spec.type == "M":  # the narrow sources of mixed additions
        return types[1]
    type_ = type_name(spec, types)
    return {"B8": "b8", "B16": "b16", "B32": "b32", "B64": "b64", "U": "u32", "A": "u64"}.get(type_, type_)


def operand(
    o: Operands, spec: OperandSpec, row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random
) -> bool:
    """Add one operand; False if this module has no rule for it."""
    type_ = kind_of(spec, types)
    role = spec.role
    name = row.name.split(".")[0]
    n = _vector_length(mods) if spec.vector == -1 else max(spec.vector, 0)
    if role in ("dp", "dpp"):
        single = role == "dp" or type_ in ("f16", "bf16")  # a scalar half has no second result (measured)
        o.texts.append(o.result("pred", "%p40") if single else f"{o.result('pred', '%p40')}|{o.result('pred', '%p41')}")
    elif role == "d" and spec.type == "b8":  # takes only a register of 8 bits (measured)
        o.texts.append(o.result("b8", "%b40"))
    elif role == "s" and spec.type == "b8":
        o.texts.append(o.byte())
    elif role in ("d", "d_") and type_ in BITS:
        if n:
            o.texts.append(o.vector_result(type_, n))
        elif spec.pair:
            o.texts.append(f"{o.result(type_, register(type_, RESULT))}|{o.result('pred', '%p41')}")
        else:
            kind = "tf32" if types and types[0] == "tf32" else type_
            o.texts.append(o.result(kind, register(type_, RESULT)))
    elif role == "ps":
        o.texts.append(o.source("pred"))
    elif role in ("s", "x") and type_ in BITS:
        o.texts.append(o.vector(type_, n) if n else o.source(type_))
    elif role == "i":
        o.texts.append(str(rng.choice(IMMEDIATES)))
    elif role in ("sel", "nsel"):
        last = name == "vmad" and len(o.sources) == 2  # the third source takes no selector (measured)
        sign = (
            "-"
            if role == "nsel" and "po" not in mods and rng.random() < 0.3 and not any(t[0] == "-" for t in o.texts)
            else ""
        )
        o.texts.append(sign + o.source("b32") + ("" if last else rng.choice(PARTS)))
    elif role == "msel":
        o.texts.append(o.source("b32") + (_simd_part(rng, name[-1]) if len(o.sources) < 3 else ""))
    elif role == "dsel":
        o.texts.append(o.result("b32", "%r40") + rng.choice(PARTS[1:]))
    elif role == "dmask":
        o.texts.append(o.result("b32", "%r40") + rng.choice(MASKS[name[-1]]))
    elif role in ("dpack", "spack"):
        half = {"b16": "b8", "b32": "b16", "b64": "b32", "b128": "b64"}[type_]
        if half == "b8":
            n = 2
            if role == "dpack":
                o.texts.append("{" + ", ".join([o.result("b8", f"%b{RESULT + k}") for k in range(n)]) + "}")
            else:
                o.texts.append("{" + ", ".join([o.byte() for _ in range(n)]) + "}")
            return True
        o.texts.append(o.vector_result(half, 2) if role == "dpack" else o.vector(half, 2))
    else:
        return False
    return True


def form(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """One form; None if an operand has no rule here."""
    opcode = opcode_text(row, mods, types)
    name = opcode.split(".")[0]
    o = Operands()
    for spec in row.operands:
        if (spec.when and not any(w in mods for w in spec.when)) or spec.optional:
            continue
        if not operand(o, spec, row, mods, types, rng):
            return None
    before, after = "", ""
    if "cc" in mods or name in CARRY:
        bits = BITS[types[0]]
        r = "r" if bits == 32 else "d"
        if name in CARRY:
            before = f"{'sub' if name == 'subc' else 'add'}.cc.u{bits} %{r}20, %{r}0, %{r}1;"
        if "cc" in mods:
            after = f"{'subc' if name.startswith('sub') else 'addc'}.u{bits} %{r}41, 0, 0;"
            o.result(f"u{bits}", f"%{r}41")
    text = f"{opcode} {', '.join(o.texts)};"
    body = "\n".join([x for x in (*o.lines, before, text, after, *o.stores()) if x])
    return Form(opcode, text, body, o.sources, o.kinds(), row.key)


def moves() -> list[Form]:
    """Packing moves of four bytes: the table's rows give only the type of the whole."""
    names = [f"%b{k}" for k in range(4)]
    vector = "{" + ", ".join(names) + "}"
    unpack = f"mov.b32 {vector}, %r0;"
    back = " ".join([f"st.global.u8 [%out+{k * 8}], %b{k};" for k in range(4)])
    loads = " ".join([f"ld.global.u8 %b{k}, [%in+{k * 8}];" for k in range(4)])
    pack = f"mov.b32 %r0, {vector};"
    return [
        Form("mov.b32", unpack, f"{load('b32', 0, 0)} {unpack} {back}", ["b32"], ["b8"] * 4, "mov#1"),
        Form("mov.b32", pack, f"{loads} {pack} {store('b32', '%r0', 0)}", ["b8"] * 4, ["b32"], "mov#2"),
    ]
