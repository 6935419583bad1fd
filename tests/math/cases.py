"""Every floating-point and division instruction as a one-instruction kernel with its reference: the tables of
test_chain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from . import exact
from .exact import BF16, F16, F32, F64, MODES, Format
from .reference import (
    BITS,
    FORMATS,
    INTEGRAL,
    Case,
    Halves,
    Near,
    Ref,
    Result,
    approx,
    arith,
    compare,
    exp2,
    from_int,
    integral,
    log2,
    modifiers,
    order,
    pick,
    quotient,
    recip,
    rsqrt,
    same,
    tf32_rna,
    to_float,
    to_float_format,
    to_int,
)


def setp_case(t: str, cmp: str, ftz: bool, sm: int) -> Case:
    f = FORMATS[t]
    z = ".ftz" if ftz else ""
    text = f"{{.reg .pred q, r; setp.eq.s32 r, $2, 0; setp.{cmp}.and{z}.{t} q, $0, $1, !r; selp.b32 $d, 1, 0, q;}}"
    return Case(text, "b32", (t, t, "s32"), lambda a, b, c: int(compare(f, cmp, ftz, a, b) and c != 0), sm)


def integer_division(t: str, rem: bool) -> Ref:
    n = BITS[t]
    mask = (1 << n) - 1

    def ref(a: int, b: int) -> Result:
        if b == 0:
            return mask
        if t[0] == "s":
            a, b = (v - (1 << n) if v >> (n - 1) else v for v in (a, b))
        q = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        return (a - q * b if rem else q) & mask

    return ref


def lanes(ref: Ref) -> Ref:
    """A scalar 16-bit reference on both halves."""

    def both(*ops: int) -> Result:
        low, high = ref(*(o & 0xFFFF for o in ops)), ref(*(o >> 16 for o in ops))
        assert not isinstance(low, Halves) and not isinstance(high, Halves)
        return Halves(low, high)

    return both


def arithmetic_cases() -> Iterator[Case]:
    for t in ("f32", "f64"):
        f = FORMATS[t]
        for mode in MODES:
            for text, ftz, sat in modifiers(f):
                for kind in ("add", "sub", "mul", "fma"):
                    n = 3 if kind == "fma" else 2
                    ops = ", ".join(f"${i}" for i in range(n))
                    yield Case(f"{kind}.{mode}{text}.{t} $d, {ops}", t, (t,) * n, arith(f, mode, ftz, sat, kind))
    for t in ("f16", "bf16"):
        f = FORMATS[t]
        for text, ftz, sat in modifiers(f):
            for kind in ("add", "sub", "mul", "fma"):
                n = 3 if kind == "fma" else 2
                ops = ", ".join(f"${i}" for i in range(n))
                sm = 75 if t == "f16" else 80 if kind == "fma" else 90
                ref = arith(f, "rn", ftz, sat, kind)
                yield Case(f"{kind}.rn{text}.{t} $d, {ops}", t, (t,) * n, ref, sm)
                yield Case(f"{kind}.rn{text}.{t}x2 $d, {ops}", t + "x2", (t + "x2",) * n, lanes(ref), sm)


def selection_cases() -> Iterator[Case]:
    for t, f in FORMATS.items():
        half = f in (F16, BF16)
        for ftz in (False, True) if f in (F32, F16) else (False,):
            for nan in (False, True) if f is not F64 else (False,):
                for xs in (False, True) if f is not F64 else (False,):
                    text = (".ftz" if ftz else "") + (".NaN" if nan else "") + (".xorsign.abs" if xs else "")
                    sm = 86 if xs else 80 if nan or half else 75
                    for op in ("min", "max"):
                        ref = pick(f, op == "max", ftz, nan, xs)
                        yield Case(f"{op}{text}.{t} $d, $0, $1", t, (t, t), ref, sm)
                        if half:
                            yield Case(f"{op}{text}.{t}x2 $d, $0, $1", t + "x2", (t + "x2",) * 2, lanes(ref), sm)
        sm = 90 if t == "bf16" else 75
        for cmp in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
            for ftz in (False, True) if f in (F32, F16) else (False,):
                yield setp_case(t, cmp, ftz, sm)
        for op in ("neg", "abs"):
            for ftz in (False, True) if f in (F32, F16) else (False,):

                def sign(a: int, f: Format = f, op: str = op, ftz: bool = ftz) -> Result:
                    if f.is_nan(a):
                        return None
                    a = f.flush(a) if ftz else a
                    return a ^ f.sign if op == "neg" else a & ~f.sign

                yield Case(f"{op}{'.ftz' if ftz else ''}.{t} $d, $0", t, (t,), sign, 80 if t == "bf16" else 75)
                if half:
                    yield Case(
                        f"{op}{'.ftz' if ftz else ''}.{t}x2 $d, $0",
                        t + "x2",
                        (t + "x2",),
                        lanes(sign),
                        80 if t == "bf16" else 75,
                    )
    for t in ("f32", "f64"):
        f = FORMATS[t]
        yield Case(f"copysign.{t} $d, $0, $1", t, (t, t), lambda a, b, f=f: (a & f.sign) | (b & ~f.sign))
        yield Case(
            f"{{.reg .pred q; setp.ne.s32 q, $2, 0; selp.{t} $d, $0, $1, q;}}",
            t,
            (t, t, "s32"),
            lambda a, b, c: a if c else b,
        )
        yield Case(f"slct.{t}.s32 $d, $0, $1, $2", t, (t, t, "s32"), lambda a, b, c: b if c >> 31 else a)
        yield Case(
            f"slct.{t}.f32 $d, $0, $1, $2",
            t,
            (t, t, "f32"),
            lambda a, b, c: a if compare(F32, "ge", False, c, 0) else b,
        )
        for kind, test in TESTP.items():
            yield Case(
                f"{{.reg .pred q; testp.{kind}.{t} q, $0; selp.b32 $d, 1, 0, q;}}",
                "b32",
                (t,),
                lambda a, f=f, test=test: int(test(f, a & ~f.sign)),
            )
        for dt, true in (("f32", 0x3F800000), ("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF)):
            yield Case(
                f"set.ltu.{dt}.{t} $d, $0, $1",
                dt,
                (t, t),
                lambda a, b, f=f, true=true: true if compare(f, "ltu", False, a, b) else 0,
            )
    for t in ("f16", "bf16"):
        f = FORMATS[t]
        for dt, true in ((t, f.bias << (f.p - 1)), ("u16", 0xFFFF), ("s32", 0xFFFFFFFF)):
            yield Case(
                f"set.gt.{dt}.{t} $d, $0, $1", dt, (t, t), lambda a, b, f=f,
                true=true: true if compare(f, "gt", False, a, b) else 0,
                90 if t == "bf16" else 75,
            )  # fmt: skip


TESTP: dict[str, Callable[[Format, int], bool]] = {
    "finite": lambda f, m: m < f.inf, "infinite": lambda f, m: m == f.inf, "number": lambda f, m: m <= f.inf,
    "notanumber": lambda f, m: m > f.inf,
    "subnormal": lambda f, m: 0 < m < 1 << (f.p - 1), "normal": lambda f, m: m == 0 or 1 << (f.p - 1) <= m < f.inf,
}  # fmt: skip


def conversion_cases() -> Iterator[Case]:
    ints = [f"{k}{n}" for k in "us" for n in (8, 16, 32, 64)]
    for t, f in FORMATS.items():
        for i in ints:
            if t == "bf16" and i.endswith("8"):
                continue
            reg = i if not i.endswith("8") else i[0] + "32"
            sm = 90 if t == "bf16" else 75
            for mode in MODES:
                shown = f"cvt.{mode}.{t}.{i} $d, $0"
                cut = (1 << BITS[i]) - 1
                ref = from_int(f, i, mode)
                yield Case(shown, t, (reg,), lambda a, ref=ref, cut=cut: ref(a & cut), sm)
            for text, mode in INTEGRAL.items():
                for ftz in (False, True) if t == "f32" else (False,):
                    ref = to_int(f, i, mode, ftz)
                    z = ".ftz" if ftz else ""
                    if i.endswith("8"):  # into a wider register: extended
                        ref = extended(ref, i)
                    yield Case(f"cvt.{text}{z}.{i}.{t} $d, $0", reg, (t,), ref, sm)
        if t in ("f16", "f32", "f64"):
            yield Case(f"cvt.rn.sat.{t}.s32 $d, $0", t, ("s32",), from_int(f, "s32", "rn", True))
        sm = 90 if t == "bf16" else 75
        for text, mode in INTEGRAL.items():
            for ftz in (False, True) if t == "f32" else (False,):
                yield Case(f"cvt.{text}{'.ftz' if ftz else ''}.{t}.{t} $d, $0", t, (t,), integral(f, mode, ftz), sm)
        if t != "bf16":
            for ftz in (False, True) if t == "f32" else (False,):
                yield Case(f"cvt{'.ftz' if ftz else ''}.sat.{t}.{t} $d, $0", t, (t,), same(f, ftz, True), sm)
    yield Case("cvt.ftz.f32.f32 $d, $0", "f32", ("f32",), same(F32, True, False))
    yield from float_conversions()


def extended(ref: Ref, t: str) -> Ref:
    def wide(a: int) -> Result:
        r = ref(a)
        assert isinstance(r, int)
        return r | 0xFFFFFF00 if t[0] == "s" and r & 0x80 else r

    return wide


def float_conversions() -> Iterator[Case]:
    for mode in MODES:
        for ftz in (False, True):
            z = ".ftz" if ftz else ""
            for d in ("f16", "bf16"):
                yield Case(
                    f"cvt.{mode}{z}.{d}.f32 $d, $0",
                    d,
                    ("f32",),
                    to_float_format(F32, FORMATS[d], mode, ftz),
                    80 if d == "bf16" else 75,
                )
            for sat in (False, True):
                s = ".sat" if sat else ""
                yield Case(
                    f"cvt.{mode}{z}{s}.f32.f64 $d, $0", "f32", ("f64",), to_float_format(F64, F32, mode, ftz, sat)
                )
        yield Case(f"cvt.{mode}.f16.f64 $d, $0", "f16", ("f64",), to_float_format(F64, F16, mode))
        yield Case(f"cvt.{mode}.bf16.f64 $d, $0", "bf16", ("f64",), to_float_format(F64, BF16, mode), 90)
        yield Case(f"cvt.{mode}.f16.bf16 $d, $0", "f16", ("bf16",), to_float_format(BF16, F16, mode), 90)
        yield Case(f"cvt.{mode}.bf16.f16 $d, $0", "bf16", ("f16",), to_float_format(F16, BF16, mode), 90)
    yield Case("cvt.rn.sat.f16.f32 $d, $0", "f16", ("f32",), to_float_format(F32, F16, "rn", sat=True))
    for s in ("f16", "bf16"):
        sm = 80 if s == "bf16" else 75
        yield Case(f"cvt.f32.{s} $d, $0", "f32", (s,), to_float_format(FORMATS[s], F32, "rn"), sm)
        yield Case(
            f"cvt.f64.{s} $d, $0", "f64", (s,), to_float_format(FORMATS[s], F64, "rn"), 90 if s == "bf16" else 75
        )
    yield Case("cvt.sat.f32.f16 $d, $0", "f32", ("f16",), to_float_format(F16, F32, "rn", sat=True))
    for ftz in (False, True):
        for sat in (False, True):
            text = (".ftz" if ftz else "") + (".sat" if sat else "")
            yield Case(f"cvt{text}.f64.f32 $d, $0", "f64", ("f32",), to_float_format(F32, F64, "rn", ftz, sat))
    for d in ("f16", "bf16"):
        for mode in ("rn", "rz"):
            for relu in (False, True):
                ref = to_float_format(F32, FORMATS[d], mode, relu=relu)
                r = ".relu" if relu else ""
                yield Case(f"cvt.{mode}{r}.{d}x2.f32 $d, $0, $1", d + "x2", ("f32", "f32"), packed(ref), 80)
                if relu:
                    yield Case(f"cvt.{mode}{r}.{d}.f32 $d, $0", d, ("f32",), ref, 80)
    yield Case("cvt.rna.tf32.f32 $d, $0", "b32", ("f32",), tf32_rna(False), 80)


def packed(ref: Ref) -> Ref:
    """Two f32 to a pair: the first operand is the upper half."""

    def both(a: int, b: int) -> Result:
        high, low = ref(a), ref(b)
        assert not isinstance(low, Halves) and not isinstance(high, Halves)
        return Halves(low, high)

    return both


def ieee_cases() -> Iterator[Case]:
    for mode in MODES:
        for ftz in (False, True):
            z = ".ftz" if ftz else ""
            yield Case(
                f"div.{mode}{z}.f32 $d, $0, $1",
                "f32",
                ("f32", "f32"),
                lambda a, b, m=mode, z=ftz: exact.div(F32, a, b, m, z),
            )
            yield Case(
                f"rcp.{mode}{z}.f32 $d, $0",
                "f32",
                ("f32",),
                lambda a, m=mode, z=ftz: exact.div(F32, 0x3F800000, a, m, z),
            )
            yield Case(f"sqrt.{mode}{z}.f32 $d, $0", "f32", ("f32",), lambda a, m=mode, z=ftz: exact.sqrt(F32, a, m, z))
        yield Case(f"div.{mode}.f64 $d, $0, $1", "f64", ("f64", "f64"), lambda a, b, m=mode: exact.div(F64, a, b, m))
        yield Case(f"rcp.{mode}.f64 $d, $0", "f64", ("f64",), lambda a, m=mode: exact.div(F64, 0x3FF << 52, a, m))
        yield Case(f"sqrt.{mode}.f64 $d, $0", "f64", ("f64",), lambda a, m=mode: exact.sqrt(F64, a, m))
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for op in ("div", "rem"):
            yield Case(f"{op}.{t} $d, $0, $1", t, (t, t), integer_division(t, op == "rem"))


def rsqrt64(a: int) -> Result:
    x = to_float(F64, a)
    if math.isnan(x) or (x < 0):
        return None
    return Near(rsqrt(x), 2.0**-51)


def approximate_cases() -> Iterator[Case]:
    for ftz in (False, True):
        z = ".ftz" if ftz else ""
        one: list[tuple[str, Callable[[float], float], float, float]] = [
            ("rcp", recip, 2.0**-23, 0.0),
            ("sqrt", math.sqrt, 2.0**-23, 0.0),
            ("rsqrt", rsqrt, 2.0**-22.9, 0.0),
            ("ex2", exp2, 2.0**-22.5, 0.0),
            ("lg2", log2, 2.0**-22.6, 2.0**-22),
        ]
        for op, fn, rel, abs_ in one:
            yield Case(f"{op}.approx{z}.f32 $d, $0", "f32", ("f32",), approx(fn, rel, abs_, ftz))
        yield Case(f"div.approx{z}.f32 $d, $0, $1", "f32", ("f32", "f32"), quotient(2.0**-22, ftz, 2.0**126))
        yield Case(f"div.full{z}.f32 $d, $0, $1", "f32", ("f32", "f32"), quotient(2.0**-22, ftz, math.inf))
    yield Case("tanh.approx.f32 $d, $0", "f32", ("f32",), approx(math.tanh, 2.0**-10.98, 2.0**-126, False))
    for op, fn in (("sin", math.sin), ("cos", math.cos)):
        ref = approx(fn, 0.0, 2.0**-20.5, False)
        # the manual's bound holds in [-pi, pi]
        yield Case(
            f"{op}.approx.f32 $d, $0",
            "f32",
            ("f32",),
            lambda a, ref=ref: ref(a) if a & 0x7FFFFFFF <= 0x40490FDB else Near(0.0, 0.0, math.inf),
        )
    yield Case("rsqrt.approx.f64 $d, $0", "f64", ("f64",), rsqrt64)


def half_function(t: str, fn: Callable[[float], float], rel: float, abs_: float, ftz: bool = False) -> Ref:
    f = FORMATS[t]
    least = to_float(f, 1)

    def ref(a: int) -> Result:
        x = to_float(f, f.flush(a) if ftz else a)
        if math.isnan(x):
            return None
        v = fn(x)
        # rounding to the format comes on top of the function's bound
        return Near(
            v,
            rel + 2.0**-f.p,
            max(abs_, least if not ftz else to_float(f, 1 << (f.p - 1)) if v < to_float(f, 1 << (f.p - 1)) else 0.0),
        )

    return ref


def half_cases() -> Iterator[Case]:
    """ex2 and tanh of the half types; bounds of the PTX manual."""
    rows: list[tuple[str, str, Callable[[float], float], float, float, int]] = [
        ("ex2.approx.f16", "f16", exp2, 2.0**-9.9, 0.0, 75), ("ex2.approx.ftz.bf16", "bf16", exp2, 2.0**-7, 0.0, 90),
        ("tanh.approx.f16", "f16", math.tanh, 0.0, 2.0**-10.987, 75),
        ("tanh.approx.bf16", "bf16", math.tanh, 0.0, 2.0**-8, 90),
    ]  # fmt: skip
    for op, t, fn, rel, abs_, sm in rows:
        ref = half_function(t, fn, rel, abs_, "ftz" in op)
        yield Case(f"{op} $d, $0", t, (t,), ref, sm)
        yield Case(f"{op}x2 $d, $0", t + "x2", (t + "x2",), lanes(ref), sm)
    for t in ("f16", "bf16"):
        f = FORMATS[t]
        sm = 90 if t == "bf16" else 75
        for dt, true in ((t + "x2", f.bias << (f.p - 1)), ("u32", 0xFFFF)):

            def greater(a: int, b: int, f: Format = f, true: int = true) -> Result:
                return true if compare(f, "gtu", False, a, b) else 0

            # as an integer both halves are compared as bits
            yield Case(f"set.gtu.{dt}.{t}x2 $d, $0, $1", t + "x2", (t + "x2",) * 2, lanes(greater), sm)
        text = (
            f"{{.reg .pred q, r, s; setp.eq.s32 s, $2, 0; setp.le.xor.{t}x2 q|r, $0, $1, s; selp.b32 $d, 1, 0, q; "
            f"@r or.b32 $d, $d, 2;}}"
        )

        def both(a: int, b: int, c: int, f: Format = f) -> Result:
            x, y = (
                compare(f, "le", False, u, v) != (c == 0) for u, v in ((a & 0xFFFF, b & 0xFFFF), (a >> 16, b >> 16))
            )
            return x | y << 1

        yield Case(text, "b32", (t + "x2", t + "x2", "s32"), both, sm)


def operand_cases() -> Iterator[Case]:
    """Immediates in every slot, a destination that is a source, guards."""
    for t, c, text in (
        ("f32", 0x3EAAAAAB, "0f3EAAAAAB"),
        ("f64", 0x3FD5555555555555, "0d3FD5555555555555"),
        ("f64", 0x4008000000000000, "0d4008000000000000"),
    ):
        f = FORMATS[t]
        for kind in ("add", "sub", "mul"):
            ref = arith(f, "rn", False, False, kind)
            yield Case(f"{kind}.{t} $d, {text}, $0", t, (t,), lambda a, ref=ref, c=c: ref(c, a))
            yield Case(f"{kind}.{t} $d, $0, {text}", t, (t,), lambda a, ref=ref, c=c: ref(a, c))
        ref = arith(f, "rz", False, False, "fma")
        for i in range(3):
            ops = ["$0", "$1"]
            ops.insert(i, text)
            yield Case(
                f"fma.rz.{t} $d, {', '.join(ops)}",
                t,
                (t, t),
                lambda a, b, ref=ref, c=c, i=i: ref(*[a, b][:i], c, *[a, b][i:]),
            )
        yield Case(f"fma.rz.{t} $d, {text}, $0, {text}", t, (t,), lambda a, ref=ref, c=c: ref(c, a, c))
        yield Case(f"neg.{t} $d, {text}", t, (t,), lambda a, f=f, c=c: c ^ f.sign)
        yield Case(
            f"max.{t} $d, $0, {text}",
            t,
            (t,),
            lambda a, f=f, c=c: c if f.is_nan(a) else max(a, c, key=lambda x: order(f, x)),
        )
        for k, ops in enumerate((f"{text}, $0", f"$0, {text}")):
            yield Case(
                f"{{.reg .pred q; setp.lt.{t} q, {ops}; selp.b32 $d, 1, 0, q;}}", "b32", (t,),
                lambda a, f=f, c=c, k=k: int(compare(f, "lt", False, *((a, c) if k else (c, a)))),
            )  # fmt: skip
            yield Case(
                f"div.rn.{t} $d, {ops}",
                t,
                (t,),
                lambda a, f=f, c=c, k=k: exact.div(f, *((a, c) if k else (c, a)), "rn"),
            )
        yield Case(f"sqrt.rn.{t} $d, {text}", t, (t,), lambda a, f=f, c=c: exact.sqrt(f, c, "rn"))
        yield Case(
            f"{{mov.b{BITS[t]} $d, $0; div.rp.{t} $d, $1, $d;}}", t, (t, t), lambda a, b, f=f: exact.div(f, b, a, "rp")
        )
        yield Case(
            f"{{mov.b{BITS[t]} $d, $0; rcp.rm.{t} $d, $d;}}",
            t,
            (t,),
            lambda a, f=f: exact.div(f, f.bias << (f.p - 1), a, "rm"),
        )
        yield Case(
            f"{{.reg .pred q; setp.eq.s32 q, $2, 0; mov.b{BITS[t]} $d, $0; @!q div.rn.{t} $d, $0, $1; @q fma.rn.{t} "
                f"$d, $0, $1, $d;}}", t, (t, t, "s32"),
            lambda a, b, c, f=f: exact.div(f, a, b, "rn") if c else exact.fma(f, a, b, a),
        )  # fmt: skip
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for op in ("div", "rem"):
            ref = integer_division(t, op == "rem")
            for c in (1, 7, 10, 16, (1 << BITS[t] - 1) - 1):
                yield Case(f"{op}.{t} $d, $0, {c}", t, (t,), lambda a, ref=ref, c=c: ref(a, c))
            yield Case(f"{op}.{t} $d, 1000, $0", t, (t,), lambda a, ref=ref: ref(1000, a))
            yield Case(f"{{mov.b{BITS[t]} $d, $0; {op}.{t} $d, $1, $d;}}", t, (t, t), lambda a, b, ref=ref: ref(b, a))
    yield Case("add.rn.f16 $d, $0, $0", "f16", ("f16",), lambda a: exact.fma(F16, a, 0x4000, a & 0x8000))
    yield Case("{.reg .pred q; setp.eq.s32 q, $1, 0; mov.b16 $d, $0; @q mul.rn.f16 $d, $0, $0;}", "f16", ("f16", "s32"),
               lambda a, c: a if c else exact.fma(F16, a, a, 0))  # fmt: skip


def guarded(case: Case) -> Case:
    """The instruction under a guard: if it is false the destination keeps its value."""
    n = len(case.srcs)
    bits = BITS[case.dst]
    kept = 0x5A5A5A5A5A5A5A5A & (1 << bits) - 1
    guard = "@q" if bits == 32 else "@!q"
    text = (
        f"{{.reg .pred q; setp.{'eq' if bits == 32 else 'ne'}.s32 q, ${n}, 0; mov.b{bits} $d, {kept}; {guard} "
        f"{case.op};}}"
    )

    def ref(*ops: int) -> Result:
        return kept if ops[n] else case.ref(*ops[:n])

    return Case(text, case.dst, (*case.srcs, "s32"), ref, case.sm)


def guarded_cases() -> Iterator[Case]:
    """Every fifth of the other instructions, and all approximate ones."""
    for i, case in enumerate(c for make in _PLAIN for c in make()):
        if case.op[0] != "{" and (i % 5 == 0 or ".approx" in case.op):
            yield guarded(case)


_PLAIN = (arithmetic_cases, selection_cases, conversion_cases, ieee_cases, approximate_cases, half_cases)

GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "arithmetic": arithmetic_cases, "selection": selection_cases, "conversion": conversion_cases, "ieee": ieee_cases,
    "approximate": approximate_cases,
    "half": half_cases, "operands": operand_cases, "guards": guarded_cases,
}  # fmt: skip
