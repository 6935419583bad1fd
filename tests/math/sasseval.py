"""Runs the sequence that one floating-point PTX instruction is lowered to, with exact arithmetic and an adversarial
MUFU.

It reads a function of level `ori` (virtual registers) and knows only the instructions of those sequences: FP32 and FP64
arithmetic, comparison and selection, the guards. Loads from ``[p + 16*(k+1)]`` give operand k, the store to ``[p]`` is
the result. :mod:`tests.math.exact` computes calls of library functions; test_library checks the library against the
same arithmetic.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import isqrt
from typing import Any

from ir_format.diag import Diagnostic
from ir_format.model import ABS, INV, NEG, ZERO, Function, Header, Imm, Inst, Label, Mem, Reg, Sym, Unit

from . import exact
from .exact import F32, F64, Format

W = 0xFFFFFFFF
# Fractions of divisors for which MUFU.RCP must be correctly rounded; docs/math.md gives the reason.
EXACT_SEEDS = (0x7FFFFF, 0x7FFFFD)
WIDTH = {
    "f32": 32,
    "u32": 32,
    "s32": 32,
    "b32": 32,
    "f64": 64,
    "b64": 64,
    "u64": 64,
    "s64": 64,
    "u16": 16,
    "s16": 16,
    "b16": 16,
}


def one_op(op: str, dst: str, srcs: list[str], sm: str) -> Unit:
    """Lower a kernel around ``op``, in which ``$d``, ``$0``, ``$1``... are replaced by the registers."""
    from stages.lower.lower import lower_unit
    from stages.parse import parse_text

    lines = [f".reg .b{WIDTH[dst]} d;", ".reg .b64 p;", "ld.param.u64 p, [o];"]
    text = op.replace("$d", "d")
    for k, s in enumerate(srcs):
        lines += [f".reg .b{WIDTH[s]} a{k};", f"ld.global.b{WIDTH[s]} a{k}, [p+{16 * (k + 1)}];"]
        text = text.replace(f"${k}", f"a{k}")
    body = "\n".join([*lines, text + ";", f"st.global.b{WIDTH[dst]} [p], d;", "ret;"])
    source = f".version 8.0\n.target {sm}\n.address_size 64\n.visible .entry k(.param .u64 o)\n{{\n{body}\n}}\n"
    module, units, diags = parse_text(source, "k.ptx", sm)
    assert module is not None, [d.message for d in diags if isinstance(d, Diagnostic)]
    return lower_unit(units[0], module, Header("ptx", sm, "k.ptx"))


class Evaluator:
    """Evaluates ``unit.functions[0]``. ``ulps``: how far MUFU may be from the correctly rounded result; ``seeded`` by
    ``seed``."""

    def __init__(self, unit: Unit, ulps: int, seed: int = 1) -> None:
        self.fn: Function = unit.functions[0]
        self.ulps = ulps
        self.rng = random.Random(seed)
        self.calls = 0
        self.order = {b.id: i for i, b in enumerate(self.fn.blocks)}

    def run(self, *operands: int) -> int:
        """The bits that the kernel stores."""
        self.regs: dict[tuple[str, int, int], int] = {}
        self.put(Reg("R", 0), 0)  # the stack pointer
        at = 0
        while True:
            for inst in self.fn.blocks[at].insts:
                if inst.guard is not None and not self.pred(inst.guard):
                    continue
                name = inst.op
                if name == "BRA":
                    target = next(o.block for o in inst.srcs if type(o) is Label)
                    if all(self.pred(o) for o in inst.srcs if type(o) is Reg):
                        at = self.order[target]
                        break
                elif name.startswith("LDG"):
                    m = next(o for o in inst.srcs if type(o) is Mem)
                    d = next(o for o in inst.dsts if type(o) is Reg and o.file == "R")
                    if m.offset:
                        self.put(d, operands[m.offset // 16 - 1])
                elif name.startswith("STG"):
                    return self.value(next(o for o in inst.srcs if type(o) is Reg and o.file == "R"))
                elif name == "CALL":
                    self.call(inst)
                elif name not in ("LDC", "ULDC", "LDCU", "BSSY", "BSYNC", "MOV", "UNDEF", "EXIT"):
                    STEP[name](self, inst)
                elif name == "MOV" and type(inst.srcs[0]) is Imm and not inst.srcs[0].sym:
                    self.put(inst.dsts[0], inst.srcs[0].value)
            else:
                at += 1

    # ------------------------------------------------------------------ operands

    def pred(self, r: Any) -> bool:
        v = True if r.num == ZERO else bool(self.regs[(r.file, r.num, 0)])
        return v != bool(r.flags & INV)

    def value(self, o: Any, double: bool = False) -> int:
        """The plain bits of an operand; of a 64-bit float immediate its high word is written."""
        if type(o) is Imm:
            return o.value << 32 if double else o.value & W
        if o.num == ZERO:
            return 0
        return sum(self.regs[(o.file, o.num, o.sub + i)] << (32 * i) for i in range(o.width))

    def float_(self, o: Any, f: Format) -> int:
        v = self.value(o, f is F64)
        if o.flags & ABS:
            v &= f.sign - 1
        return v ^ f.sign if o.flags & NEG else v

    def put(self, d: Any, v: int) -> None:
        if d.num == ZERO:
            return
        if d.file == "P":
            self.regs[("P", d.num, 0)] = int(v)
            return
        for i in range(d.width):
            self.regs[(d.file, d.num, d.sub + i)] = v >> (32 * i) & W

    def call(self, inst: Inst) -> None:
        self.calls += 1
        name = next(o.name for o in inst.srcs if type(o) is Sym)
        args = [self.value(o) for o in inst.uses[:-1]]  # the last one is the return address
        _, op, kind, mode, *ftz = name.strip("_").split("_")  # __orias_div_f32_rn_ftz
        f = F64 if kind == "f64" else F32
        if op == "rcp":
            op, args = "div", [f.bias << (f.p - 1), *args]
        fn: Callable[..., int | None] = exact.div if op == "div" else exact.sqrt
        got = fn(f, *args[: 2 if op == "div" else 1], mode, bool(ftz))
        self.put(inst.defs[0], f.nan if got is None else got)

    # ------------------------------------------------------------------ instructions

    def arith(self, inst: Inst) -> None:
        f = F64 if inst.op[0] == "D" else F32
        s = [self.float_(o, f) for o in inst.srcs]
        one = f.bias << (f.p - 1)
        if inst.op[1:] == "MUL":
            s.append(f.sign ^ (s[0] ^ s[1]) & f.sign ^ f.sign)  # a zero of the product's sign
        elif inst.op[1:] == "ADD":
            s = [s[0], one, s[1]]
        mode = next((m.lower() for m in inst.mods if m in ("RZ", "RM", "RP")), "rn")
        ftz = "FTZ" in inst.mods
        got = exact.fma(f, s[0], s[1], s[2], mode, ftz)
        self.put(inst.dsts[0], f.nan if got is None else got)

    def mufu(self, inst: Inst) -> None:
        fn = inst.mods[0]
        x = self.float_(inst.srcs[0], F32)
        f = F32
        if fn.endswith("64H"):
            f, x = F64, x << 32
        x = f.flush(x)
        got = exact.div(f, f.bias << (f.p - 1), x, "rn") if fn.startswith("RCP") else self.rsqrt(f, x)
        if got is None:
            got = f.nan
        elif not f.is_inf(got) and not f.is_zero(got):
            unit = 1 << 32 if f is F64 else 1
            sign = got & f.sign
            off = 0 if fn == "RCP" and x & 0x7FFFFF in EXACT_SEEDS else self.rng.randint(-self.ulps, self.ulps)
            got = f.flush(sign | (got & (f.sign - 1)) + off * unit)
        self.put(inst.dsts[0], got >> 32 if f is F64 else got)

    @staticmethod
    def rsqrt(f: Format, x: int) -> int | None:
        if f.is_zero(x):
            return x | f.inf
        if f.is_nan(x) or x & f.sign:
            return None
        if f.is_inf(x):
            return 0
        _, m, e = f.split(x)
        if e % 2:
            m, e = 2 * m, e - 1
        k = 3 * f.p
        return f.pack(0, isqrt((1 << 2 * k) // m), -k - e // 2, True, "rn")

    def fchk(self, inst: Inst) -> None:
        """True if a quotient sequence could leave the normal range: the narrowest condition that the sequence must
        still survive."""
        a, b = (self.float_(o, F32) for o in inst.srcs[:2])
        ea, eb = a >> 23 & 255, b >> 23 & 255
        safe = 24 < ea < 255 and 0 < eb < 253 and -126 < ea - eb < 127
        self.put(inst.dsts[0], not safe)

    def compare(self, inst: Inst) -> None:
        integer = inst.op == "ISETP"
        if integer:
            x, y = (self.value(o) for o in inst.srcs[:2])
            if "U32" not in inst.mods:
                x, y = ((v ^ 1 << 31) for v in (x, y))
            nan = False
        else:
            f = F64 if inst.op == "DSETP" else F32
            u, v = (self.float_(o, f) for o in inst.srcs[:2])
            nan = f.is_nan(u) or f.is_nan(v)
            x, y = (w if not w & f.sign else -(w & (f.sign - 1)) for w in (u, v))
        c = inst.mods[0]
        base = c[:2]
        r = {"LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y, "EQ": x == y, "NE": x != y}[base]
        if nan:
            r = c.endswith("U")
        p = next(o for o in inst.srcs[2:] if type(o) is Reg and o.file == "P")
        assert "AND" in inst.mods
        self.put(inst.dsts[0], r and self.pred(p))

    def copy(self, inst: Inst) -> None:
        self.put(inst.dsts[0], self.value(inst.srcs[0]))

    def select(self, inst: Inst) -> None:
        a, b, p = inst.srcs[:3]
        self.put(inst.dsts[0], self.value(a) if self.pred(p) else self.value(b))

    def iadd3(self, inst: Inst) -> None:
        total = 0
        for o in inst.srcs[:3]:
            v = self.value(o)
            total += -v if o.flags & NEG else v  # type: ignore[union-attr]
        self.put(inst.dsts[0], total & W)

    def lea(self, inst: Inst) -> None:
        a, b, shift = (
            self.value(o)
            for o in inst.srcs[:5]
            if type(o) is Imm or (type(o) is Reg and o.file == "R" and o.num != ZERO)
        )
        self.put(next(o for o in inst.dsts if type(o) is Reg and o.file == "R"), (a << shift) + b & W)

    def lop3(self, inst: Inst) -> None:
        a, b, c, lut = (self.value(o) for o in inst.srcs[:4])
        r = 0
        for i in range(8):
            if lut >> i & 1:
                r |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
        self.put(next(o for o in inst.dsts if type(o) is Reg and o.file == "R"), r & W)


STEP: dict[str, Callable[[Evaluator, Inst], None]] = {
    **dict.fromkeys(("FFMA", "FMUL", "FADD", "DFMA", "DMUL", "DADD"), Evaluator.arith),
    **dict.fromkeys(("ISETP", "FSETP", "DSETP"), Evaluator.compare),
    "MUFU": Evaluator.mufu, "FCHK": Evaluator.fchk, "COPY": Evaluator.copy, "SEL": Evaluator.select,
    "IADD3": Evaluator.iadd3,
    "LEA": Evaluator.lea, "LOP3": Evaluator.lop3,
}  # fmt: skip
