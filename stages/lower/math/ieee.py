"""Division, reciprocal and square root in single precision, rounded by IEEE 754 in all four modes.

Each is a seed from MUFU, Newton steps in FFMA with exact residuals, and a test that sends operands outside a safe range
of exponents to a library function. The last FFMA adds a correction of less than one unit in the last place to a value
that is already rounded to nearest (directed modes) or nearly so (nearest); only its rounding affects the result.
docs/math.md has the proofs, and tests/math executes these sequences.
"""

from __future__ import annotations

from ir_format.model import PT, RZ, Imm, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder
from stages.lower.math.common import ROUND, Val, float_imm, negate, rounding

T = "f32"
ONE = float_imm(0x3F800000)
HALF = float_imm(0x3F000000)


def variant(name: str, inst: PtxInst) -> str:
    """The library function for an instruction's rounding mode."""
    return f"{name}_{rounding(inst)}" + ("_ftz" if "ftz" in inst.mods else "")


def finish(b: Builder, res: Reg, slow: Reg, name: str, args: tuple[Val, ...]) -> None:
    """If ``slow`` then ``res = name(args)``."""
    end = b.new_block()
    b.branch(end, b.not_(slow))
    (got,) = b.call_helper(name, args)
    b.copy(res, got)
    b.place(end)


def fma(b: Builder, x: Val, y: Val, z: Val, rnd: str = "") -> Reg:
    """x*y + z in a fresh register."""
    d = b.r()
    b.emit("FFMA" + rnd, d, (x, y, z))
    return d


def reciprocal(b: Builder, v: Reg, r: Reg) -> Reg:
    """1/v to nearest, by two Newton steps from a seed at most one unit off (all significands tried; the last one before
    a power of two needs an exact seed, which the hardware gives: docs/math.md)."""
    nv = negate(v, T)
    for _ in range(2):
        r = fma(b, r, fma(b, nv, r, ONE), r)
    return r


def div_f32(b: Builder, inst: PtxInst) -> None:
    """a / b: r = 1/b improved; q = a*r, corrected by its exact residual; directed modes correct a second time.

    To nearest, one Newton step for r is enough (docs/math.md names the two divisors for which the seed must be exact,
    as the hardware's is).
    """
    d, x, y = inst.operands
    mode = rounding(inst)
    with b.region():
        n, v = b.in_reg(b.src(x, T)), b.in_reg(b.src(y, T))
        nv = negate(v, T)
        r, slow = b.r(), b.p()
        b.emit("MUFU.RCP", r, (v,))
        b.emit("FCHK", slow, (n, v))
        r = fma(b, r, fma(b, nv, r, ONE), r) if mode == "rn" else reciprocal(b, v, r)
        q = fma(b, n, r, RZ)
        q = fma(b, r, fma(b, nv, q, n), q)
        if mode != "rn":
            q = fma(b, r, fma(b, nv, q, n), q, ROUND[mode])
        finish(b, q, slow, variant("__orias_div_f32", inst), (n, v))
        b.copy(b.dst(d), q)


def rcp_f32(b: Builder, inst: PtxInst) -> None:
    """1 / b; directed modes correct the nearest number a second time.

    The biased exponents 1..252 are safe (the reciprocal is normal): doubling drops the sign, and adding 3 maps 253..255
    and 0 below 4.
    """
    d, x = inst.operands
    mode = rounding(inst)
    with b.region():
        v = b.in_reg(b.src(x, T))
        t, slow, r = b.r(), b.p(), b.r()
        b.emit("LEA", t, (v, Imm("I", 3 << 24), Imm("I", 1)))
        b.emit("ISETP.LT.U32.AND", (slow, PT), (t, Imm("I", 4 << 24), PT))
        b.emit("MUFU.RCP", r, (v,))
        r = reciprocal(b, v, r)
        if mode != "rn":
            r = fma(b, r, fma(b, negate(v, T), r, ONE), r, ROUND[mode])
        finish(b, r, slow, variant("__orias_rcp_f32", inst), (v,))
        b.copy(b.dst(d), r)


def sqrt_f32(b: Builder, inst: PtxInst) -> None:
    """sqrt(x): y = 1/sqrt(x), s = x*y, h = y/2; the residual x - s*s is exact. The range 2**-101 .. infinity is safe:
    below it, the residual could be subnormal.

    To nearest, one correction is enough (docs/math.md names the two seeds for which it is not; the hardware never gives
    them). Directed modes improve s and h first.
    """
    d, x = inst.operands
    mode = rounding(inst)
    with b.region():
        v = b.in_reg(b.src(x, T))
        t, slow, y = b.r(), b.p(), b.r()
        b.emit("IADD3", t, (v, Imm("I", -(26 << 23) & 0xFFFFFFFF), RZ))
        b.emit("MUFU.RSQ", y, (v,))
        b.emit("ISETP.GT.U32.AND", (slow, PT), (t, Imm("I", 0x727FFFFF), PT))
        s, h = b.r(), b.r()
        b.emit("FMUL.FTZ", s, (v, y))
        b.emit("FMUL.FTZ", h, (y, HALF))
        if mode != "rn":
            e = fma(b, negate(s, T), h, HALF)
            s, h = fma(b, s, e, s), fma(b, h, e, h)
            s = fma(b, fma(b, negate(s, T), s, v), h, s)
        r = fma(b, fma(b, negate(s, T), s, v), h, s, ROUND[mode])
        finish(b, r, slow, variant("__orias_sqrt_f32", inst), (v,))
        b.copy(b.dst(d), r)
