"""Single precision: arithmetic, minimum and maximum, comparison, selection, and the approximate functions.

The approximate functions are one MUFU operation each. MUFU reads and writes subnormals as zero, so without ``.ftz`` a
subnormal operand (or an operand whose result is subnormal) is scaled by a power of two first and the result is scaled
back; both scalings are exact.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.model import NOT_PT, PT, RZ, Imm, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.math.common import (
    NEG_RZ,
    SIGN,
    Val,
    absolute,
    arith_mods,
    combine_pred,
    comparison,
    contractible,
    float_imm,
    ftz,
    negate,
    never,
    pred_dsts,
    signed,
)

T = "f32"
MIN_NORMAL: Final = float_imm(0x00800000)  # 2**-126
BIG: Final = float_imm(0x7E800000)  # 2**126: above it a reciprocal is subnormal
HALF: Final = float_imm(0x3F000000)
QUARTER: Final = float_imm(0x3E800000)
ONE: Final = float_imm(0x3F800000)
TWO_24: Final = float_imm(0x4B800000)
TWO_12: Final = float_imm(0x45800000)
TWO_M12: Final = float_imm(0x39800000)
MINUS_24: Final = float_imm(0xC1C00000)
MINUS_126: Final = float_imm(0xC2FC0000)
INV_TWO_PI: Final = float_imm(0x3E22F983)  # 1/(2 pi), nearest f32


# --------------------------------------------------------------------------- arithmetic


def add(b: Builder, inst: PtxInst) -> None:
    """add, sub: FADD, for sub with a negated operand."""
    d, x, y = inst.operands
    v = b.src(y, T)
    b.emit(
        "FADD" + arith_mods(inst),
        b.dst(d),
        (b.src(x, T), negate(v, T) if inst.op == "sub" else v),
        attrs=contractible(b, inst),
    )


def mul(b: Builder, inst: PtxInst) -> None:
    d, x, y = inst.operands
    b.emit("FMUL" + arith_mods(inst), b.dst(d), (b.src(x, T), b.src(y, T)), attrs=contractible(b, inst))


def fma(b: Builder, inst: PtxInst) -> None:
    """fma, and mad, which is the same from sm_20 on."""
    d, x, y, z = inst.operands
    b.emit("FFMA" + arith_mods(inst), b.dst(d), (b.src(x, T), b.src(y, T), b.src(z, T)))


# Lanes of a packed pair: SMs with a paired FP32 instruction (measured); elsewhere two scalar ones.


def packed(op: str) -> Rule:
    """add, sub, mul, fma on .f32x2: one paired instruction where the SM has it, else one for each half."""

    def rule(b: Builder, inst: PtxInst) -> None:
        d, *xs = inst.operands
        mods = arith_mods(inst)
        dst = b.dst(d, "f32x2")
        srcs = [b.in_reg(b.src(x, "b64"), 2) for x in xs]
        if b.has("packed-f32") and inst.op != "sub":
            mark = contractible(b, inst)
            b.emit(f"{op}2{mods}", dst, [s._replace(mod="F32x2.HI_LO") for s in srcs], attrs=mark)
            return
        out = b.r(2)  # the destination may be a source of the second half
        for i in range(2):
            words = [b.word(s, i) for s in srcs]
            if inst.op == "sub":
                words[1] = negate(words[1], T)
            b.emit(op + mods, b.word(out, i), words, attrs=contractible(b, inst))
        b.copy(dst, out)

    return rule


def neg(b: Builder, inst: PtxInst) -> None:
    """neg, abs: an addition of -0, which keeps every value and makes NaNs canonical."""
    d, x = inst.operands
    v = b.in_reg(b.src(x, T))
    b.emit("FADD" + ftz(inst), b.dst(d), (absolute(v, T) if inst.op == "abs" else negate(v, T), NEG_RZ))


def minmax(b: Builder, inst: PtxInst) -> None:
    """min and max of two or three operands, with .NaN, .xorsign and .abs."""
    d, *xs = inst.operands
    v: list[Val] = [b.src(x, T) for x in xs]
    if "xorsign" in inst.mods:
        v = [signed(b, x, T) for x in v]
    if "abs" in inst.mods:
        v = [absolute(x, T) for x in v]
    mods = ftz(inst) + (".NAN" if "NaN" in inst.mods else "")
    which = PT if inst.op == "min" else NOT_PT
    if len(v) == 3:
        b.need(inst, "three-way-min-max")
        if b.has("three-way-float"):
            b.emit("FMNMX3" + mods, b.dst(d), (*v, which))
            return
        t = b.r()
        b.emit("FMNMX" + mods, t, (v[0], v[1], which))
        v = [t, v[2]]
    if "xorsign" in inst.mods:
        mods += ".XORSIGN"
    b.emit("FMNMX" + mods, b.dst(d), (*v, which))


def copysign(b: Builder, inst: PtxInst) -> None:
    """copysign d, a, b: the sign of a on the value of b."""
    d, a, v = inst.operands
    b.emit("LOP3.LUT", b.dst(d), (b.in_reg(b.src(v, T)), Imm("I", SIGN[T]), b.in_reg(b.src(a, T)), Imm("I", 0xB8)))


def testp(b: Builder, inst: PtxInst) -> None:
    """testp: integer comparisons of the magnitude. A zero counts as normal (PTX manual; measured)."""
    p, x = inst.operands
    if inst.mods[0] == T:  # no property to have; ptxas takes it, and leaves the predicate as it was (measured)
        never(b, b.dst(p, "pred"))
        return
    m = b.r()
    b.emit("LOP3.LUT", m, (b.in_reg(b.src(x, T)), Imm("I", 0x7FFFFFFF), RZ, Imm("I", 0xC0)))
    d = b.dst(p, "pred")
    inf = Imm("I", 0x7F800000)
    kind = inst.mods[0]
    single = {"finite": "LT", "infinite": "EQ", "number": "LE", "notanumber": "GT"}.get(kind)
    if single is not None:
        b.emit(f"ISETP.{single}.U32.AND", (d, PT), (m, inf, PT))
        return
    below, t = b.r(), b.p()
    b.emit("IADD3", below, (m, Imm("I", 0xFFFFFFFF), RZ))  # zero becomes the largest number
    if kind == "subnormal":
        b.emit("ISETP.LT.U32.AND", (d, PT), (below, Imm("I", 0x007FFFFF), PT))
    else:
        b.emit("ISETP.GE.U32.AND", (t, PT), (below, Imm("I", 0x007FFFFF), PT))
        b.emit("ISETP.LT.U32.AND", (d, PT), (m, inf, t))


# --------------------------------------------------------------------------- comparison and selection


def setp(b: Builder, inst: PtxInst) -> None:
    """setp: FSETP has both destinations and the Boolean operator."""
    d, x, y = inst.operands[:3]
    cmp, bop = comparison(inst)
    b.emit(f"FSETP.{cmp}{ftz(inst)}.{bop}", pred_dsts(b, d), (b.src(x, T), b.src(y, T), combine_pred(b, inst, 3)))


def set_true(t: str) -> int:
    """The value of "true" that ``set`` writes to a destination of type ``t``: 1.0 or all ones."""
    return {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(t, 0xFFFFFFFF)


def set_f32(b: Builder, inst: PtxInst) -> None:
    """set.dtype.f32."""
    d, x, y = inst.operands[:3]
    cmp, bop = comparison(inst)
    srcs = (b.src(x, T), b.src(y, T), combine_pred(b, inst, 3))
    if inst.types[0] == T:
        b.emit(f"FSET.BF.{cmp}{ftz(inst)}.{bop}", b.dst(d), srcs)
        return
    p = b.p()
    b.emit(f"FSETP.{cmp}{ftz(inst)}.{bop}", (p, PT), srcs)
    b.select(b.dst(d), Imm("I", set_true(inst.types[0])), RZ, p)


def set_from_int(b: Builder, inst: PtxInst) -> None:
    """set.f32 and the half types from an integer comparison."""
    from stages.lower.rules.integer import compare

    d, x, y = inst.operands[:3]
    cmp, bop = comparison(inst)
    t = inst.types[1]
    p, _ = compare(b, cmp, t, b.src(x, t), b.src(y, t), bop, combine_pred(b, inst, 3))
    b.select(b.dst(d), Imm("I", set_true(inst.types[0])), RZ, p)


def selp(b: Builder, inst: PtxInst) -> None:
    d, x, y, p = inst.operands
    t = inst.types[0]
    c = b.src(p, "pred")
    assert isinstance(c, Reg)
    b.select(b.dst(d, t), b.src(x, t), b.src(y, t), c)


# --------------------------------------------------------------------------- approximate functions


def mufu(fn: str) -> Rule:
    """A function without scaling of its operand or result."""

    def rule(b: Builder, inst: PtxInst) -> None:
        d, x = inst.operands
        b.emit(f"MUFU.{fn}", b.dst(d), (b.src(x, T),))

    return rule


def is_tiny(b: Builder, x: Val) -> Reg:
    """Is ``x`` zero or subnormal? (false for a NaN)"""
    p = b.p()
    b.emit("FSETP.LT.AND", (p, PT), (absolute(x, T), MIN_NORMAL, PT))
    return p


def scaled(b: Builder, x: Val, factor: Imm, p: Reg) -> Reg:
    """``p ? x * factor : x`` in a fresh register."""
    v = b.r()
    b.copy(v, x)
    b.emit("FMUL", v, (v, factor), p)
    return v


def tiny_scaled(fn: str, fix: str, factor: Imm) -> Rule:
    """A function that multiplies a subnormal operand by 2**24 and corrects the result: FMUL or FADD with ``factor``."""

    def rule(b: Builder, inst: PtxInst) -> None:
        d, x = inst.operands
        v = b.src(x, T)
        if "ftz" in inst.mods:
            b.emit(f"MUFU.{fn}", b.dst(d), (v,))
            return
        p = is_tiny(b, v)
        r = b.r()
        b.emit(f"MUFU.{fn}", r, (scaled(b, v, TWO_24, p),))
        b.emit(fix, r, (r, factor), p)
        b.copy(b.dst(d), r)

    return rule


def ex2(b: Builder, inst: PtxInst) -> None:
    """2**x; below -126 as the square of 2**(x/2), whose multiplication makes the subnormal result."""
    d, x = inst.operands
    v = b.src(x, T)
    if "ftz" in inst.mods:
        b.emit("MUFU.EX2", b.dst(d), (v,))
        return
    p = b.p()
    b.emit("FSETP.LT.AND", (p, PT), (v, MINUS_126, PT))
    r = b.r()
    b.emit("MUFU.EX2", r, (scaled(b, v, HALF, p),))
    b.emit("FMUL", r, (r, r), p)
    b.copy(b.dst(d), r)


def sincos(b: Builder, inst: PtxInst) -> None:
    """sin, cos: the operand of MUFU is in turns of a full circle."""
    d, x = inst.operands
    t = b.in_reg(b.src(x, T))
    if "2pi" not in inst.mods:
        turns = b.r()
        b.emit("FMUL.RZ", turns, (t, INV_TWO_PI))
        t = turns
    b.emit(f"MUFU.{inst.op.upper()}", b.dst(d), (t,))


def rcp_approx(b: Builder, inst: PtxInst) -> None:
    """1/x: a scale s keeps both x*s and 1/(x*s) normal, and 1/x = s * (1/(x*s))."""
    d, x = inst.operands
    v = b.src(x, T)
    if "ftz" in inst.mods:
        b.emit("MUFU.RCP", b.dst(d), (v,))
        return
    tiny, big = is_tiny(b, v), b.p()
    b.emit("FSETP.GT.AND", (big, PT), (absolute(v, T), BIG, PT))
    s, t, r = b.r(), b.r(), b.r()
    b.select(s, TWO_24, ONE, tiny)
    b.select(t, QUARTER, s, big)
    m = b.r()
    b.emit("FMUL", m, (b.in_reg(v), t))
    b.emit("MUFU.RCP", r, (m,))
    b.emit("FMUL", b.dst(d), (r, t))


def div_approx(b: Builder, inst: PtxInst) -> None:
    """div.approx and div.full: a * (1/b), both scaled by one power of two where 1/b is not normal.

    ``.full`` also scales a large divisor, whose reciprocal MUFU would flush; ``.approx`` is specified up to 2**126
    only.
    """
    d, x, y = inst.operands
    full, f = "full" in inst.mods, ftz(inst)
    n, v = b.src(x, T), b.src(y, T)
    steps: list[tuple[Reg, Imm]] = []
    if full:
        big = b.p()
        b.emit(f"FSETP.GT{f}.AND", (big, PT), (absolute(v, T), BIG, PT))
        steps.append((big, QUARTER))
    if not f:
        steps.append((is_tiny(b, v), TWO_24))
    for p, factor in steps:
        nn, vv = b.r(), b.r()
        b.copy(nn, n)
        b.copy(vv, v)
        b.emit("FMUL" + f, nn, (nn, factor), p)
        b.emit("FMUL" + f, vv, (vv, factor), p)
        n, v = nn, vv
    r = b.r()
    b.emit("MUFU.RCP", r, (v,))
    b.emit("FMUL" + f, b.dst(d), (n, r))


def when_approx(approx: Rule, ieee: Callable[[], Rule]) -> Rule:
    """``approx`` for .approx and .full, else the IEEE rule."""

    def rule(b: Builder, inst: PtxInst) -> None:
        if "approx" in inst.mods or "full" in inst.mods:
            approx(b, inst)
        else:
            ieee()(b, inst)

    return rule


def _ieee(name: str) -> Callable[[], Rule]:
    def load() -> Rule:
        from stages.lower.math import ieee

        rule: Rule = getattr(ieee, name)
        return rule

    return load


RULES: dict[str, Rule] = {
    "add.f32": add, "sub.f32": add, "mul.f32": mul, "fma.f32": fma, "mad.f32": fma,
    "add.f32x2": packed("FADD"), "sub.f32x2": packed("FADD"), "mul.f32x2": packed("FMUL"), "fma.f32x2": packed("FFMA"),
    "neg.f32": neg, "abs.f32": neg, "min.f32": minmax, "max.f32": minmax, "copysign.f32": copysign, "testp.f32": testp,
    "setp.f32": setp, "selp.f32": selp, "selp.f64": selp,
    "div.f32": when_approx(div_approx, _ieee("div_f32")),
    "rcp.f32": when_approx(rcp_approx, _ieee("rcp_f32")),
    "sqrt.f32": when_approx(tiny_scaled("SQRT", "FMUL", TWO_M12), _ieee("sqrt_f32")),
    "rsqrt.f32": tiny_scaled("RSQ", "FMUL", TWO_12), "lg2.f32": tiny_scaled("LG2", "FADD", MINUS_24),
    "ex2.f32": ex2, "sin.f32": sincos, "cos.f32": sincos, "tanh.f32": mufu("TANH"),
    **{f"set.{d}.f32": set_f32 for d in ("f32", "u32", "s32", "b32", "f16", "bf16", "u16", "s16")},
    **{f"set.{d}.{s}": set_from_int for d in ("f32", "f16", "bf16") for s in ("b16", "u16", "s16", "b32", "u32", "s32",
        "b64", "u64", "s64")},
}  # fmt: skip
