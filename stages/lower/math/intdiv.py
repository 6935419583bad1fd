"""Integer division and remainder.

By a constant: :mod:`stages.lower.math.constdiv`. 8 and 16 bits: one float division, exact. 32 bits: a float reciprocal,
one Newton step in integers, at most two corrections. 64 bits: a library function. docs/math.md has the error bounds.
Division by zero returns all ones, as in ptxas's code (measured).
"""

from __future__ import annotations

from ir_format.model import NEG, PT, RZ, Imm, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule, is_signed
from stages.lower.math.common import Val
from stages.lower.math.constdiv import WORD, divide_by

ALL_ONES: Final = Imm("I", 0xFFFFFFFF)
HALF: Final = Imm("I", 0x3F000000)


def magnitude(b: Builder, x: Val) -> Reg:
    """|x| of a 32-bit integer."""
    d = b.r()
    b.emit("IABS", d, (b.in_reg(x),))
    return d


def div16(b: Builder, n: Reg, v: Reg) -> Reg:
    """floor(n / v) of two numbers below 2**16: trunc((n + 1/2) * (1/v)).

    (n + 1/2) / v is at least 1/(2v) away from every integer, and the relative error of the product, below 2**-21, moves
    it by less.
    """
    fn, fv, r, q, out = (b.r() for _ in range(5))
    to_float = "I2FP.F32.U32" if b.has("int-to-float-alu") else "I2F.U32"
    b.emit(to_float, fn, (n,))
    b.emit(to_float, fv, (v,))
    b.emit("FADD", fn, (fn, HALF))
    b.emit("MUFU.RCP", r, (fv,))
    b.emit("FMUL", q, (fn, r))
    b.emit("F2I.U32.TRUNC.NTZ", out, (q,))
    return out


def estimate32(b: Builder, n: Reg, v: Reg) -> tuple[Reg, Reg]:
    """(Q, n - Q*v) for unsigned 32-bit n, v with Q at most two below the quotient."""
    f, r, x0, e, x1, q, nq, rest = (b.r() for _ in range(8))
    b.emit("I2F.U32.RP", f, (v,))
    b.emit("MUFU.RCP", r, (f,))
    b.emit("IADD3", r, (r, Imm("I", 0x0FFFFFFE), RZ))  # times 2**32, two units lower
    b.emit("F2I.FTZ.U32.TRUNC.NTZ", x0, (r,))
    b.emit("IADD3", nq, (RZ, _neg(v), RZ))
    b.emit("IMAD", e, (nq, x0, RZ))
    b.emit("IMAD.HI.U32", x1, (x0, e, RZ))
    b.emit("IADD3", x1, (x1, x0, RZ))
    b.emit("IMAD.HI.U32", q, (x1, n, RZ))
    b.emit("IMAD", rest, (nq, q, n))
    return q, rest


def _neg(x: Reg) -> Reg:
    return x._replace(flags=x.flags ^ NEG)


def udivmod32(b: Builder, n: Reg, v: Reg, want_q: bool) -> Reg:
    """Quotient or remainder of unsigned 32-bit numbers. The caller corrects the result of a zero divisor."""
    q, rest = estimate32(b, n, v)
    for i in range(2):
        p = b.p()
        b.emit("ISETP.GE.U32.AND", (p, PT), (rest, v, PT))
        if want_q:
            b.emit("IADD3", q, (q, Imm("I", 1), RZ), p)
        if not want_q or i == 0:
            b.emit("IADD3", rest, (rest, _neg(v), RZ), p)
    return q if want_q else rest


def signed_result(b: Builder, mag: Reg, sign: Val) -> Reg:
    """``sign`` negative ? -mag : mag."""
    p, d = b.p(), b.r()
    b.emit("ISETP.LT.AND", (p, PT), (b.in_reg(sign), RZ, PT))
    b.copy(d, mag)
    b.emit("IADD3", d, (RZ, _neg(mag), RZ), p)
    return d


def divide(b: Builder, inst: PtxInst) -> None:
    """div and rem of 8 to 32 bits."""
    t = inst.types[0]
    d, x, y = inst.operands
    want_q = inst.op == "div"
    by = b.ext(b.src(y, t), t)
    if type(by) is Imm and by.value & WORD:
        value = by.value & WORD
        by_constant = divide_by(
            b,
            b.in_reg(b.ext(b.src(x, t), t)),
            value - (1 << 32 if is_signed(t) and value >> 31 else 0),
            is_signed(t),
            want_q,
        )
        b.copy(b.dst(d, t), by_constant)
        return
    n, v = b.in_reg(b.ext(b.src(x, t), t)), b.in_reg(by)
    signed = is_signed(t)
    un, uv = (magnitude(b, n), magnitude(b, v)) if signed else (n, v)
    if b.bits(t) == 32:
        out = udivmod32(b, un, uv, want_q)
    else:
        out = div16(b, un, uv)
        if not want_q:
            nv, r = b.r(), b.r()
            b.emit("IADD3", nv, (RZ, _neg(uv), RZ))
            b.emit("IMAD", r, (out, nv, un))
            out = r
    if signed:
        sign: Val = n
        if want_q:
            sign = b.r()
            b.emit("LOP3.LUT", sign, (n, v, RZ, Imm("I", 0x3C)))
        out = signed_result(b, out, sign)
    zero = b.p()
    b.emit("ISETP.EQ.U32.AND", (zero, PT), (v, RZ, PT))
    b.select(b.dst(d, t), ALL_ONES, out, zero)


def divide64(b: Builder, inst: PtxInst) -> None:
    """div and rem of 64 bits: a function for one of them, or for both if the unit has both."""
    t = inst.types[0]
    d, x, y = inst.operands
    kind = t[0] + "64"
    both = {f"div.{kind}", f"rem.{kind}"} <= b.ctx.divisions
    with b.region():
        args = (b.in_reg(b.src(x, t), 2), b.in_reg(b.src(y, t), 2))
        got = b.call_helper(f"__orias_{'divmod' if both else inst.op}_{kind}", args)
        b.copy(b.dst(d, t), got[-1 if inst.op == "rem" else 0])


RULES: dict[str, Rule] = {
    **{f"{op}.{k}{n}": divide64 if n == 64 else divide for op in ("div", "rem") for k in "us" for n in (16, 32, 64)},
}
