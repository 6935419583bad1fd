"""Double precision: arithmetic, minimum and maximum, comparison; division, reciprocal and square root in all rounding
modes.

The IEEE sequences are those of :mod:`stages.lower.math.ieee` with one step more, because a MUFU seed has about 20 good
bits.
"""

from __future__ import annotations

from ir_format.model import NEG, PT, RZ, RZ2, AttrValue, Imm, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.math.common import (
    ROUND,
    SIGN,
    Val,
    absolute,
    combine_pred,
    comparison,
    contractible,
    negate,
    never,
    pred_dsts,
    rounding,
)

T = "f64"
ONE: Final = Imm("I", 0x3FF0000000000000)
HALF: Final = Imm("I", 0x3FE0000000000000)
THREE_EIGHTHS: Final = Imm("I", 0x3FD8000000000000)
TWO_54: Final = Imm("I", 0x4350000000000000)
TWO_27: Final = Imm("I", 0x41A0000000000000)
QUIET: Final = Imm("I", 0x00080000)  # in the high word
MAGNITUDE: Final = Imm("I", 0x7FFFFFFF)


# --------------------------------------------------------------------------- arithmetic


def emit_d(
    b: Builder,
    op: str,
    d: Reg | tuple[Reg, Reg],
    srcs: tuple[Val, ...],
    tail: tuple[Reg, ...] = (),
    guard: Reg | None = None,
    attrs: dict[str, AttrValue] | None = None,
) -> None:
    """Emit an FP64 instruction. One source other than the first may be an immediate: the high word of a number whose
    low word is 0."""
    v = list(srcs)
    if type(v[0]) is Imm and type(v[1]) is Reg and not op.startswith("DSETP"):
        v[0], v[1] = v[1], v[0]
    free = True
    for i, x in enumerate(v):
        if type(x) is Imm:
            if free and i and not x.value & 0xFFFFFFFF:
                v[i] = Imm("I", x.value >> 32)
                free = False
            else:
                v[i] = b.in_reg(x, 2)
    b.emit(op, d, (*v, *tail), guard, attrs=attrs)


def add(b: Builder, inst: PtxInst) -> None:
    d, x, y = inst.operands
    v = b.src(y, T)
    other = negate(v, T) if inst.op == "sub" else v
    mark = contractible(b, inst)
    emit_d(b, "DADD" + ROUND[rounding(inst)], b.dst(d, T), (b.src(x, T), other), attrs=mark)


def mul(b: Builder, inst: PtxInst) -> None:
    d, x, y = inst.operands
    mark = contractible(b, inst)
    emit_d(b, "DMUL" + ROUND[rounding(inst)], b.dst(d, T), (b.src(x, T), b.src(y, T)), attrs=mark)


def fma(b: Builder, inst: PtxInst) -> None:
    """fma, and mad, which means the same from sm_20 on."""
    d, x, y, z = inst.operands
    emit_d(b, "DFMA" + ROUND[rounding(inst)], b.dst(d, T), (b.src(x, T), b.src(y, T), b.src(z, T)))


def neg(b: Builder, inst: PtxInst) -> None:
    """neg, abs: -0 + x keeps every value."""
    d, x = inst.operands
    v = b.in_reg(b.src(x, T), 2)
    b.emit("DADD", b.dst(d, T), (RZ2._replace(flags=NEG), absolute(v, T) if inst.op == "abs" else negate(v, T)))


def minmax_into(b: Builder, d: Reg, x: Val, y: Val, op: str) -> None:
    """d = min or max: DSETP tells whether the result is x, and whether both are NaN; then the result is y as a quiet
    NaN."""
    p, nan = b.p(), b.p()
    x, y = b.in_reg(x, 2), b.in_reg(y, 2)
    b.emit(f"DSETP.{op.upper()}.AND", (p, nan), (x, y, PT))
    t = b.r(2)
    b.select(t, x, y, p)
    b.emit("LOP3.LUT", b.hi_r(t), (b.hi(y), QUIET, RZ, Imm("I", 0xFC)), nan)
    b.copy(d, t)


def minmax(b: Builder, inst: PtxInst) -> None:
    d, x, y = inst.operands
    minmax_into(b, b.dst(d, T), b.src(x, T), b.src(y, T), inst.op)


def saturate(b: Builder, d: Reg, x: Reg) -> None:
    """d = x clamped to [0, 1]; a NaN becomes +0."""
    for op, bound in (("GT", Imm("I", 0)), ("LT", ONE)):
        p, t = b.p(), b.r(2)
        emit_d(b, f"DSETP.{op}.AND", (p, PT), (x, RZ2 if bound.value == 0 else bound), (PT,))
        b.select(t, x, bound, p)
        x = t
    b.copy(d, x)


def copysign(b: Builder, inst: PtxInst) -> None:
    """copysign d, a, b: the sign of a on the value of b."""
    dst, a, v = inst.operands
    d, s, x = b.dst(dst, T), b.src(a, T), b.src(v, T)
    t = b.r()
    b.emit("LOP3.LUT", t, (b.in_reg(b.hi(x)), Imm("I", SIGN["f32"]), b.in_reg(b.hi(s)), Imm("I", 0xB8)))
    b.copy(b.lo_r(d), b.lo(x))
    b.copy(b.hi_r(d), t)


def testp(b: Builder, inst: PtxInst) -> None:
    """testp: 64-bit integer comparisons of the magnitude. A zero counts as normal (PTX manual; measured)."""
    from stages.lower.rules.integer import add64, compare_into

    p, x = inst.operands
    if inst.mods[0] == T:  # as for f32
        never(b, b.dst(p, "pred"))
        return
    v = b.in_reg(b.src(x, T), 2)
    m = b.r(2)
    b.copy(b.lo_r(m), b.lo(v))
    b.emit("LOP3.LUT", b.hi_r(m), (b.hi(v), MAGNITUDE, RZ, Imm("I", 0xC0)))
    d = b.dst(p, "pred")
    inf, below_normal = Imm("I", 0x7FF0000000000000), Imm("I", (1 << 52) - 1)
    kind = inst.mods[0]
    single = {"finite": "LT", "infinite": "EQ", "number": "LE", "notanumber": "GT"}.get(kind)
    if single is not None:
        compare_into(b, d, PT, single, "u64", m, inf, "AND", PT)
        return
    below, t = b.r(2), b.p()
    add64(b, below, m, Imm("I", (1 << 64) - 1))  # zero becomes the largest number
    if kind == "subnormal":
        compare_into(b, d, PT, "LT", "u64", below, below_normal, "AND", PT)
    else:
        compare_into(b, t, PT, "GE", "u64", below, below_normal, "AND", PT)
        compare_into(b, d, PT, "LT", "u64", m, inf, "AND", t)


def setp(b: Builder, inst: PtxInst) -> None:
    d, x, y = inst.operands[:3]
    cmp, bop = comparison(inst)
    emit_d(b, f"DSETP.{cmp}.{bop}", pred_dsts(b, d), (b.src(x, T), b.src(y, T)), (combine_pred(b, inst, 3),))


def set_f64(b: Builder, inst: PtxInst) -> None:
    """set.dtype.f64."""
    from stages.lower.math.f32 import set_true

    d, x, y = inst.operands[:3]
    cmp, bop = comparison(inst)
    p = b.p()
    emit_d(b, f"DSETP.{cmp}.{bop}", (p, PT), (b.src(x, T), b.src(y, T)), (combine_pred(b, inst, 3),))
    b.select(b.dst(d), Imm("I", set_true(inst.types[0])), RZ, p)


# --------------------------------------------------------------------------- division, reciprocal, square root


def dfma(b: Builder, x: Val, y: Val, z: Val, rnd: str = "") -> Reg:
    """x*y + z in a fresh register."""
    d = b.r(2)
    emit_d(b, "DFMA" + rnd, d, (x, y, z))
    return d


def seed(b: Builder, fn: str, x: Reg) -> Reg:
    """A MUFU seed from the high word of ``x``; the low word is 0."""
    r = b.r(2)
    b.copy(b.lo_r(r), Imm("I", 0))
    b.emit(f"MUFU.{fn}", b.hi_r(r), (b.hi(x),))
    return r


def reciprocal(b: Builder, v: Reg) -> Reg:
    """1/v to nearest: a cubic step (18 bits to 53), then a Newton step.

    The seed is increased in magnitude by three units of its last place, which is at least the true value. So the first
    step errs in that direction too, and the reciprocal of the number just below a power of two, which is nearly a tie,
    is rounded to the right side.
    """
    nv = negate(v, T)
    r = seed(b, "RCP64H", v)
    b.emit("IADD3", b.hi_r(r), (b.hi(r), Imm("I", 3), RZ))
    e = dfma(b, nv, r, ONE)
    r = dfma(b, r, dfma(b, e, e, e), r)
    return dfma(b, r, dfma(b, nv, r, ONE), r)


def finish(b: Builder, res: Reg, slow: Reg, name: str, args: tuple[Val, ...]) -> None:
    """If ``slow`` then ``res = name(args)``."""
    end = b.new_block()
    b.branch(end, b.not_(slow))
    (got,) = b.call_helper(name, args)
    b.copy(res, got)
    b.place(end)


def div(b: Builder, inst: PtxInst) -> None:
    """a / b.

    Safe when the biased exponent of a is at least 55 (so that the residual a - b*q is exact: its last place is at
    2**-1073 or above), and the computed q and b are below 2**1017 and q is above 2**-1021. The high words of q and b
    are compared as f32 bit patterns, which have the order of the magnitudes. An FFMA with zero passes q's word on, and
    gives a NaN if b's word is an infinity or a NaN; a NaN in q's word stays one. (A NaN or an infinity in a shows in q,
    so a needs no check.)
    """
    d, x, y = inst.operands
    mode = rounding(inst)
    with b.region():
        n, v = b.in_reg(b.src(x, T), 2), b.in_reg(b.src(y, T), 2)
        nv = negate(v, T)
        r = reciprocal(b, v)
        q = b.r(2)
        b.emit("DMUL", q, (n, r))
        q = dfma(b, r, dfma(b, nv, q, n), q)
        if mode != "rn":
            q = dfma(b, r, dfma(b, nv, q, n), q, ROUND[mode])
        t, fast = b.r(), b.p()
        b.emit("FSETP.GEU.AND", (fast, PT), (absolute(b.hi(n), "f32"), Imm("I", 55 << 20), PT))
        b.emit("FFMA", t, (RZ, b.hi(v), b.hi(q)))
        b.emit("FSETP.GT.AND", (fast, PT), (absolute(t, "f32"), Imm("I", 2 << 20), fast))
        finish(b, q, b.not_(fast), f"__orias_div_f64_{mode}", (n, v))
        b.copy(b.dst(d, T), q)


def rcp(b: Builder, inst: PtxInst) -> None:
    """1 / b. The biased exponents 1..2044 are safe: doubling drops the sign, and adding 3 maps 2045..2047 and 0 below
    4."""
    d, x = inst.operands
    if "approx" in inst.mods:
        approx_high(b, inst, "RCP64H")
        return
    mode = rounding(inst)
    with b.region():
        v = b.in_reg(b.src(x, T), 2)
        t, slow = b.r(), b.p()
        b.emit("LEA", t, (b.hi(v), Imm("I", 3 << 21), Imm("I", 1)))
        b.emit("ISETP.LT.U32.AND", (slow, PT), (t, Imm("I", 4 << 21), PT))
        r = reciprocal(b, v)
        if mode != "rn":
            r = dfma(b, r, dfma(b, negate(v, T), r, ONE), r, ROUND[mode])
        finish(b, r, slow, f"__orias_rcp_f64_{mode}", (v,))
        b.copy(b.dst(d, T), r)


def rsqrt_step(b: Builder, v: Reg) -> tuple[Reg, Reg]:
    """1/sqrt(v), as the 20-bit seed y and improved: with e = 1 - v*y*y, y * (1 + e/2 + 3e**2/8) has an error of
    5e**3/16."""
    y = seed(b, "RSQ64H", v)
    y2, ye = b.r(2), b.r(2)
    b.emit("DMUL", y2, (y, y))
    e = dfma(b, v, negate(y2, T), ONE)
    c = dfma(b, e, THREE_EIGHTHS, HALF)
    b.emit("DMUL", ye, (y, e))
    return y, dfma(b, c, ye, y)


def sqrt(b: Builder, inst: PtxInst) -> None:
    """sqrt(x). The range 2**-969 .. infinity is safe: there the residual x - s*s is exact. Directed modes first round s
    to nearest."""
    d, x = inst.operands
    mode = rounding(inst)
    with b.region():
        v = b.in_reg(b.src(x, T), 2)
        t, slow = b.r(), b.p()
        b.emit("IADD3", t, (b.hi(v), Imm("I", -(54 << 20) & 0xFFFFFFFF), RZ))
        b.emit("ISETP.GE.U32.AND", (slow, PT), (t, Imm("I", (2047 - 54) << 20), PT))
        _, y = rsqrt_step(b, v)
        s, h = b.r(2), b.r(2)
        b.emit("DMUL", s, (v, y))
        emit_d(b, "DMUL", h, (y, HALF))
        s = dfma(b, dfma(b, negate(s, T), s, v), h, s, "")
        if mode != "rn":
            s = dfma(b, dfma(b, negate(s, T), s, v), h, s, ROUND[mode])
        finish(b, s, slow, f"__orias_sqrt_f64_{mode}", (v,))
        b.copy(b.dst(d, T), s)


def approx_high(b: Builder, inst: PtxInst, fn: str) -> None:
    """.approx.ftz: the seed alone, low word 0."""
    d, x = inst.operands
    b.copy(b.dst(d, T), seed(b, fn, b.in_reg(b.src(x, T), 2)))


def rsqrt(b: Builder, inst: PtxInst) -> None:
    """rsqrt.approx: a subnormal is scaled by 2**54 first. For zeros, infinities and negative numbers the seed is the
    result.

    A NaN goes through the arithmetic, because its high word may be that of an infinity.
    """
    d, x = inst.operands
    if "ftz" in inst.mods:
        approx_high(b, inst, "RSQ64H")
        return
    v = b.r(2)
    b.copy(v, b.src(x, T))
    t, tiny, special = b.r(), b.p(), b.p()
    b.emit("LOP3.LUT", t, (b.hi(v), MAGNITUDE, RZ, Imm("I", 0xC0)))
    b.emit("ISETP.LT.U32.AND", (tiny, PT), (t, Imm("I", 1 << 20), PT))
    emit_d(b, "DMUL", v, (v, TWO_54), guard=tiny)
    first, y = rsqrt_step(b, v)
    emit_d(b, "DMUL", y, (y, TWO_27), guard=tiny)
    b.emit("IADD3", t, (b.hi(v), Imm("I", -(1 << 20) & 0xFFFFFFFF), RZ))
    b.emit("ISETP.GE.U32.AND", (special, PT), (t, Imm("I", 2046 << 20), PT))
    b.emit("DSETP.NUM.AND", (special, PT), (v, v, special))
    b.select(b.dst(d, T), first, y, special)


RULES: dict[str, Rule] = {
    "add.f64": add, "sub.f64": add, "mul.f64": mul, "fma.f64": fma, "mad.f64": fma, "neg.f64": neg, "abs.f64": neg,
    "min.f64": minmax, "max.f64": minmax, "copysign.f64": copysign, "testp.f64": testp, "setp.f64": setp,
    "div.f64": div, "rcp.f64": rcp, "sqrt.f64": sqrt, "rsqrt.f64": rsqrt,
    **{f"set.{d}.f64": set_f64 for d in ("f32", "u32", "s32", "b32", "f16", "bf16", "u16", "s16")},
}  # fmt: skip
