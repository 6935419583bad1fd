"""Division by a constant: a product with its integer reciprocal, and a shift.

With d > 0 and N the bound of abs(n), floor(n / d) = floor(n * m / 2**(32 + s)) for 0 <= n <= N if m * d - 2**(32 + s)
is at least 0 and N times that is below 2**(32 + s): the product is then n/d plus less than 1/d (Granlund and
Montgomery, 1994). ptxas uses the same code for constants as for variables (measured).
"""

from __future__ import annotations

from ir_format.model import NEG, RZ, RZ2, Imm, Reg
from ir_format.record import NamedTuple
from stages.lower.builder import Builder

WORD = 0xFFFFFFFF


class Magic(NamedTuple):
    """n / d = (n >> before) * (2**32 * more + factor) >> (32 + after)."""

    factor: int
    before: int
    after: int
    more: bool


def _factor(d: int, bits: int, after: int) -> int | None:
    """The factor for numbers below 2**bits (or as far as it, for magnitudes) and a shift, if that shift is enough."""
    power = 1 << (32 + after)
    m = -(-power // d)
    return m if (m * d - power) << bits < power else None


def unsigned(d: int) -> Magic:
    """For numbers below 2**32; d is no power of two, and below 2**32."""
    for after in range(d.bit_length() + 1):
        m = _factor(d, 32, after)
        if m is not None:
            if m <= WORD:
                return Magic(m, 0, after, False)
            break
    zeros = (d & -d).bit_length() - 1
    if zeros:
        for after in range(d.bit_length() + 1):
            m = _factor(d >> zeros, 32 - zeros, after)
            if m is not None and m <= WORD:
                return Magic(m, zeros, after, False)
    after = d.bit_length()
    m = _factor(d, 32, after)
    assert m is not None and WORD < m < 1 << 33
    return Magic(m & WORD, 0, after, True)


def signed(d: int) -> Magic:
    """For magnitudes up to 2**31; d is no power of two, and below 2**31."""
    for after in range(d.bit_length() + 1):
        m = _factor(d, 31, after)
        if m is not None:
            break
    assert m is not None and m <= WORD
    return Magic(m, 0, after, m >= 1 << 31)


def divide_by(b: Builder, n: Reg, d: int, sign: bool, want_q: bool) -> Reg:
    """Quotient or remainder of 32-bit ``n`` by a constant other than 0, given as an integer of the type."""
    size = abs(d)
    if size == 1:
        q = n if d == 1 else _minus(b, n)
        return q if want_q else RZ
    if size & (size - 1) == 0:
        k = size.bit_length() - 1
        if not sign:
            return _shift(b, n, k, False) if want_q else _mask(b, n, size - 1)
        bias = b.r()
        b.emit("IADD3", bias, (n, _shift(b, _shift(b, n, 31, True), 32 - k, False), RZ))
        if not want_q:  # n less the multiple of the power
            rest = b.r()
            b.emit("IADD3", rest, (n, _mask(b, bias, -size & WORD)._replace(flags=NEG), RZ))
            return rest
        q = _shift(b, bias, k, True)
    else:
        q = _signed_quotient(b, n, size) if sign else _unsigned_quotient(b, n, size)
    if want_q:
        return _minus(b, q) if d < 0 else q
    rest = b.r()
    b.emit("IMAD", rest, (q, Imm("I", -size & WORD), n))
    return rest


def _unsigned_quotient(b: Builder, n: Reg, d: int) -> Reg:
    m = unsigned(d)
    high = b.r()
    b.emit("IMAD.HI.U32", high, (_shift(b, n, m.before, False), Imm("I", m.factor), RZ2))
    if not m.more:
        return _shift(b, high, m.after, False)
    # (n + high) >> after, which may have 33 bits
    half, total = b.r(), b.r()
    b.emit("IADD3", half, (n, high._replace(flags=NEG), RZ))
    b.emit("IADD3", total, (_shift(b, half, 1, False), high, RZ))
    return _shift(b, total, m.after - 1, False)


def _signed_quotient(b: Builder, n: Reg, d: int) -> Reg:
    """The floor is one too low for negative numbers, so the sign bit is added."""
    m = signed(d)
    high, q = b.r(), b.r()
    b.emit("IMAD.HI", high, (n, Imm("I", m.factor), RZ2))
    if m.more:  # the factor was read as a negative number
        total = b.r()
        b.emit("IADD3", total, (high, n, RZ))
        high = total
    b.emit("IADD3", q, (_shift(b, high, m.after, True), _shift(b, n, 31, False), RZ))
    return q


def _shift(b: Builder, x: Reg, k: int, sign: bool) -> Reg:
    if k == 0:
        return x
    d = b.r()
    b.emit("SHF.R.S32.HI" if sign else "SHF.R.U32.HI", d, (RZ, Imm("I", k), x))
    return d


def _mask(b: Builder, x: Reg, mask: int) -> Reg:
    d = b.r()
    b.emit("LOP3.LUT", d, (x, Imm("I", mask), RZ, Imm("I", 0xC0)))
    return d


def _minus(b: Builder, x: Reg) -> Reg:
    d = b.r()
    b.emit("IADD3", d, (RZ, x._replace(flags=NEG), RZ))
    return d
