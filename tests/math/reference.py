"""What floating-point and division instructions compute by the PTX manual, on bit patterns.

A reference takes operand bits (integers) and returns the result's bits, or None for "any NaN". Approximate functions
return a :class:`Near` instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from . import exact
from .exact import BF16, F16, F32, F64, Format

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "b32": 32, "b16": 16, "b64": 64,
    "tf32": 32,
        **{f"{k}{n}": n for k in "us" for n in (8, 16, 32, 64)}}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Near:
    """An approximate result: within ``rel`` of ``value``, or within ``abs_``. ``low``/``high``: both results are right
    (flushing at a boundary)."""

    value: float
    rel: float
    abs_: float = 0.0


@dataclass(frozen=True, slots=True)
class Halves:
    """A packed result, half by half."""

    low: int | Near | None
    high: int | Near | None


ANY = Near(0.0, 0.0, math.inf)
Result = int | Near | Halves | None
Ref = Callable[..., Result]


@dataclass(frozen=True, slots=True)
class Case:
    """``op`` with ``$d`` and ``$0``...; types of destination and sources; the first SM that has it."""

    op: str
    dst: str
    srcs: tuple[str, ...]
    ref: Ref
    sm: int = 75
    version: str = "8.0"

    @property
    def name(self) -> str:
        return self.op.split(" ")[0] if self.op[0] != "{" else self.op.split(";")[1].split()[0]


def to_float(f: Format, x: int) -> float:
    if f.is_nan(x):
        return math.nan
    if f.is_inf(x):
        return -math.inf if x & f.sign else math.inf
    s, m, e = f.split(x)
    return math.ldexp(-m if s else m, e) if m else (-0.0 if s else 0.0)


def to_fraction(f: Format, x: int) -> Fraction:
    s, m, e = f.split(x)
    v = Fraction(m) * Fraction(2) ** e
    return -v if s else v


def clamp01(f: Format, x: int | None) -> int:
    """.sat: NaN and everything below 0 become +0."""
    one = f.bias << (f.p - 1)
    if x is None or f.is_nan(x) or x & f.sign:
        return 0
    return min(x, one)


def order(f: Format, x: int) -> int:
    """A key that orders numbers, with -0 below +0."""
    m = x & (f.sign - 1)
    return -m - 1 if x & f.sign else m


def modifiers(f: Format, sat: bool = True) -> Iterator[tuple[str, bool, bool]]:
    for ftz in (False, True) if f in (F32, F16) else (False,):
        for s in (False, True) if sat and f in (F32, F16) else (False,):
            yield (".ftz" if ftz else "") + (".sat" if s else ""), ftz, s


# --------------------------------------------------------------------------- arithmetic


def arith(f: Format, mode: str, ftz: bool, sat: bool, kind: str) -> Ref:
    one = f.bias << (f.p - 1)

    def ref(a: int, b: int, c: int = 0) -> Result:
        if kind == "mul":
            zero = (a ^ b) & f.sign
            r = exact.fma(f, a, b, zero, mode, ftz)
        elif kind == "fma":
            r = exact.fma(f, a, b, c, mode, ftz)
        else:
            r = exact.fma(f, a, one, b ^ (f.sign if kind == "sub" else 0), mode, ftz)
        if ftz and r is not None and f.is_zero(r):
            # flushed because it is tiny when rounded with unbounded exponents; the manual does not say whether to flush
            # a number that becomes the smallest normal one when rounded at the subnormal place: both are right
            x, y, z = (f.flush(v) for v in (a, b, c))
            operands = {"mul": (x, y, (x ^ y) & f.sign), "fma": (x, y, z)}.get(
                kind, (x, one, y ^ (f.sign if kind == "sub" else 0))
            )
            if not f.is_zero(f.flush(exact.fma(f, *operands, mode) or 0)):
                return ANY
        return clamp01(f, r) if sat else r

    return ref


def pick(f: Format, want_max: bool, ftz: bool, nan: bool, xorsign: bool = False) -> Ref:
    """min and max; .xorsign.abs compares magnitudes and takes the exclusive or of the signs."""

    def ref(a: int, b: int) -> Result:
        if ftz:
            a, b = f.flush(a), f.flush(b)
        sign = (a ^ b) & f.sign
        if xorsign:
            a, b = a & ~f.sign, b & ~f.sign
        na, nb = f.is_nan(a), f.is_nan(b)
        if (na and nb) or (nan and (na or nb)):
            return None
        r = b if na else a if nb else (max if want_max else min)(a, b, key=lambda x: order(f, x))
        return r | sign if xorsign else r

    return ref


COMPARE: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def compare(f: Format, cmp: str, ftz: bool, a: int, b: int) -> bool:
    if ftz:
        a, b = f.flush(a), f.flush(b)
    nan = f.is_nan(a) or f.is_nan(b)
    if cmp in ("num", "nan"):
        return nan == (cmp == "nan")
    if nan:
        return cmp.endswith("u")
    return COMPARE[cmp[:2]](to_float(f, a), to_float(f, b))


# --------------------------------------------------------------------------- conversions

INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def round_integer(x: Fraction, mode: str) -> int:
    low = math.floor(x)
    rest = x - low
    if rest == 0:
        return low
    if mode == "rn":
        return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low & 1))
    if mode == "rz":
        return low if x > 0 else low + 1
    return low + (mode == "rp")


def from_int(f: Format, t: str, mode: str, sat: bool = False) -> Ref:
    n = BITS[t]

    def ref(a: int) -> Result:
        v = a - (1 << n) if t[0] == "s" and a >> (n - 1) else a
        r = f.pack(int(v < 0), abs(v), 0, False, mode)
        return clamp01(f, r) if sat else r

    return ref


def to_int(f: Format, t: str, mode: str, ftz: bool = False) -> Ref:
    """Out of range: the nearest end. NaN: 0, or only the top bit if a 64-bit type takes part (PTX manual)."""
    n = BITS[t]
    low, high = (-(1 << n - 1), (1 << n - 1) - 1) if t[0] == "s" else (0, (1 << n) - 1)
    mask = (1 << n) - 1

    def ref(a: int) -> Result:
        if ftz:
            a = f.flush(a)
        if f.is_nan(a):
            return nan_integer(t, f)
        if f.is_inf(a):
            return (low if a & f.sign else high) & mask
        return min(max(round_integer(to_fraction(f, a), mode), low), high) & mask

    return ref


def nan_integer(t: str, f: Format) -> int:
    n = BITS[t]
    return 1 << (n - 1) if n == 64 or f is F64 else 0


def to_float_format(
    src: Format,
    dst: Format,
    mode: str,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Ref:
    def ref(a: int) -> Result:
        if ftz and src is F32:
            a = src.flush(a)
        if src.is_nan(a):
            return 0 if sat else dst.nan if relu or satfinite else None
        s = a & src.sign
        if src.is_inf(a):
            r: int | None = dst.inf | (dst.sign if s else 0)
        else:
            sb, m, e = src.split(a)
            r = dst.pack(sb, m, e, False, mode, ftz and dst is F32)
        assert r is not None
        if satfinite and dst.is_inf(r):
            r -= 1
        if relu and s:
            r = 0
        return clamp01(dst, r) if sat else r

    return ref


def integral(f: Format, mode: str, ftz: bool = False) -> Ref:
    def ref(a: int) -> Result:
        if ftz:
            a = f.flush(a)
        if f.is_nan(a):
            return None
        if f.is_inf(a) or f.is_zero(a):
            return a
        v = round_integer(to_fraction(f, a), mode)
        return (a & f.sign) | f.pack(0, abs(v), 0, False, "rn")

    return ref


def same(f: Format, ftz: bool, sat: bool) -> Ref:
    def ref(a: int) -> Result:
        if ftz:
            a = f.flush(a)
        if sat:
            return clamp01(f, a)
        return None if f.is_nan(a) else a

    return ref


def tf32_rna(satfinite: bool) -> Ref:
    f = Format("tf32", 11, 8, 0)

    def ref(a: int) -> Result:
        if F32.is_nan(a):
            return None if a >> 13 & 0x3FF else ANY  # a payload in the 13 dropped bits is lost (measured)
        if F32.is_inf(a):
            return (a & F32.sign) | (0x7F7FE000 if satfinite else F32.inf)
        s, m, e = F32.split(a)
        r = f.pack(s, m, e, False, "rna")
        if satfinite and f.is_inf(r):
            r -= 1
        return r << 13

    return ref


# --------------------------------------------------------------------------- approximate functions


def approx(fn: Callable[[float], float], rel: float, abs_: float, ftz: bool) -> Ref:
    """Bounds of the PTX manual; a result that may be flushed is allowed to be zero."""

    def ref(a: int) -> Result:
        x = to_float(F32, F32.flush(a) if ftz else a)
        try:
            v = fn(x)
        except (ValueError, ZeroDivisionError, OverflowError):
            v = math.nan
        if math.isnan(v):
            return None
        slack = abs_
        if ftz and abs(v) <= 2.0**-126 * (1 + rel):
            slack = max(slack, 2.0**-126)
        elif abs(v) < 2.0**-126:
            slack = max(slack, 2.0**-149)
        return Near(v, rel, slack)

    return ref


def recip(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def rsqrt(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 0.0 if x == math.inf else 1 / math.sqrt(x)


def exp2(x: float) -> float:
    return math.inf if x >= 1024 else 0.0 if x < -1100 else 2.0**x


def log2(x: float) -> float:
    return -math.inf if x == 0 else math.log2(x)


def quotient(rel: float, ftz: bool, limit: float) -> Ref:
    """Approximate division; no statement for divisors above ``limit`` (PTX manual), except that division by infinity
    gives zero."""

    def ref(a: int, b: int) -> Result:
        if ftz:
            a, b = F32.flush(a), F32.flush(b)
        x, y = to_float(F32, a), to_float(F32, b)
        if math.isnan(x) or math.isnan(y) or (x == 0 == y) or (math.isinf(x) and math.isinf(y)):
            return None
        if abs(y) > limit and not math.isinf(y):
            return Near(0.0, 0.0, math.inf)
        if y == 0:
            return Near(math.copysign(math.inf, x) * math.copysign(1, y), 0)
        v = x / y
        return Near(v, rel, 2.0**-125 if ftz and abs(v) < 2.0**-125 else 2.0**-149)

    return ref
