"""Launches and references of the corpus kernels that compute: integers, bits, conversions, floats."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from tests.kernels import exact
from tests.kernels.cases import SHAPES_1D, line
from tests.kernels.model import Arg, Array, Expected, Launch, Scalar, expected, fresh, inp, s32, scalar

Generator = np.random.Generator


def one_dim(
    name: str,
    n: int,
    shape: tuple[int, int],
    inputs: dict[str, Array],
    wants: dict[str, Expected],
    extra: list[Arg] | None = None,
) -> Launch:
    """A launch of ``NAME(inputs..., outputs..., n, extra...)``; outputs contain a pattern before."""
    args: list[Arg] = [inp(key, data) for key, data in inputs.items()]
    for key, want in wants.items():
        args.append(fresh(key, len(want.values) - len(_guard(want)), want.values.dtype.name))
    args += [s32("n", n), *(extra or [])]
    return Launch(name, f"n={n}", *line(*shape), 0, args, expect=wants)


def _guard(want: Expected) -> Array:
    from tests.kernels.model import guard

    return guard(want.values.dtype)


def columns(*parts: Array) -> Expected:
    """The expectation of an array of records: element ``len(parts) * i + k`` is ``parts[k][i]``."""
    return expected(np.stack(parts, axis=1).ravel())


Body = Callable[[Generator, int], tuple[dict[str, Array], dict[str, Expected]]]


def _plain(name: str, generator: Generator, body: Body) -> list[Launch]:
    """The launches of every one-dimensional shape."""
    return [one_dim(name, n, (blocks, threads), *body(generator, n)) for blocks, threads, n in SHAPES_1D]


def bytes_mem(generator: Generator) -> list[Launch]:
    """8- and 16-bit loads, stores, extensions and truncations."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        raw = [g.integers(0, 65536, n, dtype=np.uint16) for _ in range(4)]
        raw[3] = np.where(g.random(n) < 0.2, np.uint16(0x8000), raw[3]).astype(np.uint16)
        ub, sb = raw[0].astype(np.uint8), raw[1].astype(np.uint8).view(np.int8)
        uh, sh = raw[2], raw[3].view(np.int16)
        a, b, c, d = (v.astype(np.int64) for v in (ub, sb, uh, sh))
        wants = {
            "oub": expected((a + b).astype(np.uint8)),
            "osb": expected((b * 3 - a).astype(np.int8)),
            "ouh": expected((c * d).astype(np.uint16)),
            "osh": expected(((d >> 2) + (c >> 1) - b).astype(np.int16)),
        }
        return {"ub": ub, "sb": sb, "uh": uh, "sh": sh}, wants

    return _plain("bytes_mem", generator, body)


def shift64(generator: Generator) -> list[Launch]:
    """64-bit shifts; amounts are reduced to 0..63 by the kernel."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x = exact.longs(g, n)
        amount = exact.ints(g, n, edges=True)
        s = (amount & 63).astype(np.uint64)
        signed = x.view(np.int64)
        sign = (signed >> np.int64(63)).view(np.uint64)
        wants = {
            "left": expected(x << s),
            "right": expected(x >> s),
            "arith": expected(signed >> s.view(np.int64)),
            "rotated": expected((x << s) | (x >> ((np.uint64(64) - s) & np.uint64(63)))),
            "fixed": expected((x << np.uint64(13)) ^ (x >> np.uint64(40)) ^ sign),
        }
        return {"x": x, "amount": amount}, wants

    return _plain("shift64", generator, body)


def _field(word: int, at: int, size: int, signed: bool) -> int:
    value = (word >> at) & ((1 << size) - 1)
    return value - (1 << size) if signed and value >> (size - 1) else value


def bitfield(generator: Generator) -> list[Launch]:
    """C bit fields (a:5 unsigned, b:7, c:12 unsigned, d:8 from bit 0 up) and fields at run-time places."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x = exact.ints(g, n, edges=True).view(np.uint32)
        packed, sums, moved = [], [], []
        for word in x.tolist():
            a, b = _field(word, 0, 5, False), _field(word, 5, 7, True)
            c, d = _field(word, 12, 12, False), _field(word, 24, 8, True)
            sums.append(a + b + c + d)
            packed.append(((a + 3) & 31) | ((-b & 127) << 5) | ((c ^ 0x5A5) << 12) | (((d >> 1) & 255) << 24))
            at, ones = word & 15, (1 << (((word >> 4) & 15) + 1)) - 1
            moved.append((word & ~(ones << (16 - at))) | (((word >> at) & ones) << (16 - at)))
        wants = {
            "packed": expected(exact.wrap(packed, np.uint32)),
            "sums": expected(exact.wrap(sums, np.int32)),
            "moved": expected(exact.wrap(moved, np.uint32)),
        }
        return {"x": x}, wants

    return _plain("bitfield", generator, body)


def _to_int(value: float, bits: int, signed: bool, rounding: str, from_double: bool) -> int:
    """cvt from float to integer.  NaN gives 0 unless the source is f64 or the target has 64 bits, then the top bit
    alone (PTX manual 9.0, cvt); values out of range saturate (same place)."""
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1 if signed else bits)) - 1
    if np.isnan(value):
        return 0 if bits < 64 and not from_double else (low if signed else 1 << (bits - 1))
    if np.isinf(value):
        return high if value > 0 else low
    rounded = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}[rounding](np.float64(value))
    return max(low, min(high, int(rounded)))


def _directed(value: Array, dtype: type, towards: str) -> Array:
    """float to a shorter float, rounded down ("rd") or to zero ("rz")."""
    wide = value.astype(np.float64)
    near: Array = wide.astype(dtype)
    back = near.astype(np.float64)
    high = back > wide if towards == "rd" else np.abs(back) > np.abs(wide)
    target: Array = np.array(-np.inf if towards == "rd" else 0.0, dtype)
    return np.where(high, np.nextafter(near, target), near).astype(dtype)


def _uint_to_float_rz(value: int) -> np.float32:
    extra = max(0, value.bit_length() - 24)
    return np.float32((value >> extra) << extra)


def float_conv(generator: Generator) -> list[Launch]:
    """Conversions, every one exactly defined by the PTX manual."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x = exact.floats(g, n, edges=True, scale=1000.0)
        d = exact.doubles(g, n, edges=True)
        d = np.where(g.random(n) < 0.4, d * 10.0 ** g.integers(0, 22, n), d)
        halfway = g.integers(-100, 100, n) + 0.5
        x = np.where(g.random(n) < 0.2, halfway, x).astype(np.float32)
        k, u = exact.ints(g, n, edges=True), exact.longs(g, n)

        def convert(values: Array, bits: int, signed: bool, rounding: str) -> Array:
            double = values.dtype == np.float64
            items = [_to_int(v, bits, signed, rounding, double) for v in values.tolist()]
            return exact.wrap(items, f"{'i' if signed else 'u'}{bits // 8}")

        wants = {
            "ints": columns(*(convert(x, 32, True, r) for r in ("rn", "rz", "rd")), convert(d, 32, True, "ru")),
            "uints": columns(convert(x, 32, False, "rz"), convert(d, 32, False, "rn")),
            "longs": columns(convert(x, 64, True, "rz"), convert(d, 64, True, "rn")),
            "floats": columns(
                k.astype(np.float32),
                np.array([_uint_to_float_rz(v) for v in k.view(np.uint32).tolist()], np.float32),
                u.astype(np.float32),
                d.astype(np.float32),
                _directed(d, np.float32, "rd"),
                np.rint(x) + np.trunc(x),
            ),
            "doubles": columns(x.astype(np.float64), u.view(np.int64).astype(np.float64), np.floor(d)),
            "halfs": columns(x.astype(np.float16), _directed(x, np.float16, "rz")),
        }
        return {"x": x, "d": d, "k": k, "u": u}, wants

    return _plain("float_conv", generator, body)


def minmax(generator: Generator) -> list[Launch]:
    """Extremes of integers and floats.  cvt.sat of -0 may give either zero: not checked."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        a, b = exact.ints(g, n, edges=True), exact.ints(g, n, edges=True)
        x, y = exact.floats(g, n, edges=True), exact.floats(g, n, edges=True)
        ua, ub = a.view(np.uint32), b.view(np.uint32)
        r, s = a.astype(np.int64) * b, a.astype(np.int64) << 20
        saturated = np.where(x > 0, np.minimum(x, np.float32(1)), np.float32(0))
        floats = columns(exact.min_f32(x, y), exact.max_f32(x, y), np.abs(x), saturated, np.copysign(x, y))
        mask = np.ones(len(floats.values), np.bool_)
        mask[3 : 5 * n : 5] = ~((x == 0) & np.signbit(x))
        wants = {
            "ints": columns(np.minimum(a, b), np.maximum(a, b), np.abs(a), np.clip(a, -100, 100)),
            "uints": columns(np.minimum(ua, ub), np.maximum(ua, ub)),
            "longs": columns(np.minimum(r, s), np.maximum(r, s), np.abs(r)),
            "floats": Expected(floats.values, mask=mask),
        }
        return {"a": a, "b": b, "x": x, "y": y}, wants

    return _plain("minmax", generator, body)


def byte_perm(generator: Generator) -> list[Launch]:
    """prmt in its default mode, without sign replication."""

    def permute(a: int, b: int, selector: int) -> int:
        pool = a.to_bytes(4, "little") + b.to_bytes(4, "little")
        return int.from_bytes(bytes(pool[(selector >> (4 * k)) & 7] for k in range(4)), "little")

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x, y = (exact.ints(g, n, edges=True).view(np.uint32) for _ in range(2))
        pairs = list(zip(x.tolist(), y.tolist(), strict=True))
        wants = {
            "swapped": expected(x.byteswap()),
            "halves": expected((x & np.uint32(0xFFFF)) | (y << np.uint32(16))),
            "picked": expected(exact.wrap((permute(a, b, (a ^ b) & 0x7777) for a, b in pairs), np.uint32)),
            "wide": expected((x.byteswap().astype(np.uint64) << np.uint64(32)) | y.byteswap()),
        }
        return {"x": x, "y": y}, wants

    return _plain("byte_perm", generator, body)


def mul_hi(generator: Generator) -> list[Launch]:
    """High and wide products by Python's integers."""

    def signed(value: int, bits: int) -> int:
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x, y = exact.longs(g, n), exact.longs(g, n)
        ints, uints, longs, wide = [], [], [], []
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            low = 0xFFFFFFFF
            ints += [signed(a, 32) * signed(b, 32) >> 32, signed(a, 24) * signed(b, 24)]
            uints.append((a & low) * (b & low) >> 32)
            longs += [signed(a, 64) * signed(b, 64) >> 64, signed(a, 32) * signed(b, 32) + b]
            wide += [a * b, a * b >> 64, (a & low) * (b & low) + b]
        wants = {
            "ints": expected(exact.wrap(ints, np.int32)),
            "uints": expected(exact.wrap(uints, np.uint32)),
            "longs": expected(exact.wrap(longs, np.int64)),
            "wide": expected(exact.wrap(wide, np.uint64)),
        }
        return {"x": x, "y": y}, wants

    return _plain("mul_hi", generator, body)


def funnel(generator: Generator) -> list[Launch]:
    """Funnel shifts: wrap uses the amount modulo 32, clamp stops at 32."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x, y = (exact.ints(g, n, edges=True).view(np.uint32) for _ in range(2))
        s = g.integers(0, 70, n, dtype=np.uint32)
        s = np.where(g.random(n) < 0.1, np.uint32(0xFFFFFFFF), s).astype(np.uint32)
        out = []
        for lo, hi, k in zip(x.tolist(), y.tolist(), s.tolist(), strict=True):
            both, clamped = hi << 32 | lo, min(k, 32)
            out += [both << (k & 31) >> 32, both >> (k & 31), both << clamped >> 32, both >> clamped]
            out += [lo << 11 | lo >> 21, (hi << 32 | hi) << 27 >> 32]
        return {"x": x, "y": y, "s": s}, {"out": expected(exact.wrap(out, np.uint32))}

    return _plain("funnel", generator, body)


def bit_count(generator: Generator) -> list[Launch]:
    """Counting and reversing bits."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x = exact.longs(g, n)
        counts, rev, rev64 = [], [], []
        for v in x.tolist():
            w = (v >> 16) & 0xFFFFFFFF
            counts += [w.bit_count(), v.bit_count(), 32 - w.bit_length(), 64 - v.bit_length()]
            counts += [(w & -w).bit_length(), (v & -v).bit_length()]
            rev.append(int(f"{w:032b}"[::-1], 2))
            rev64.append(int(f"{v:064b}"[::-1], 2))
        wants = {
            "counts": expected(exact.wrap(counts, np.int32)),
            "rev": expected(exact.wrap(rev, np.uint32)),
            "rev64": expected(exact.wrap(rev64, np.uint64)),
        }
        return {"x": x}, wants

    return _plain("bit_count", generator, body)


def s64_arith(generator: Generator) -> list[Launch]:
    """64-bit arithmetic and comparisons."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        a, b = exact.longs(g, n), exact.longs(g, n)
        b = np.where(g.random(n) < 0.15, a, b)
        p, q = a.view(np.int64), b.view(np.int64)
        low = a + b
        one = np.uint64(1)
        carry = (low < a).astype(np.uint64)
        flags = (p < q) + 2 * (a < b) + 4 * (p == q) + 8 * (a >= b) + 16 * (p > 0) + 32 * (q != 0)
        wants = {
            "out": columns(p + q * 3, p - q, np.where(p < q, -p, ~q), (p & q) | (p ^ np.int64(0x00FF00FF00FF00FF))),
            "sum128": columns(low, (a >> one) + (b >> one) + carry),
            "flags": expected(flags.astype(np.int32)),
        }
        return {"x": a, "y": b}, wants

    return _plain("s64_arith", generator, body)


def div32(generator: Generator) -> list[Launch]:
    """32-bit division; division by zero and INT_MIN / -1 are unspecified and not checked."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        a, b = exact.ints(g, n, edges=True), exact.ints(g, n, edges=True)
        b = np.where(g.random(n) < 0.4, b >> g.integers(8, 30, n, dtype=np.int32), b).astype(np.int32)
        defined = b != 0
        overflow = (a == -(2**31)) & (b == -1)
        safe = np.where(defined & ~overflow, b, 1).astype(np.int32)
        ua, ub = a.view(np.uint32), np.where(defined, b, 1).astype(np.int32).view(np.uint32)

        def quotient(divisor: int) -> Array:
            return exact.trunc_div(a, np.full_like(a, divisor))

        full = exact.trunc_div(a, safe)
        out = columns(full, a - full * safe, quotient(-13), a - quotient(4096) * np.int32(4096))
        uout = columns(ua // ub, ua % ub, ua // np.uint32(641), ua % np.uint32(1000000007))
        mask = np.ones(len(out.values), np.bool_)
        umask = mask.copy()
        for column in range(2):
            mask[column : 4 * n : 4] = defined & ~overflow
            umask[column : 4 * n : 4] = defined
        sa, sb = ua & np.uint32(0xFFFF), (b.view(np.uint32) | np.uint32(1)) & np.uint32(0xFFFF)
        wants = {
            "out": Expected(out.values, mask=mask),
            "uout": Expected(uout.values, mask=umask),
            "small": expected((sa // sb + sa % sb).astype(np.uint16)),
        }
        return {"x": a, "y": b}, wants

    return _plain("div32", generator, body)


def dot_bytes(generator: Generator) -> list[Launch]:
    """dp4a and dp2a: products of packed parts added to the third operand."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x, y = exact.ints(g, n, edges=True), exact.ints(g, n, edges=True)

        def parts(values: Array, kind: str) -> Array:  # n rows of 4 bytes or 2 halves
            return values.view(kind).reshape(n, 4 // int(kind[1])).astype(np.int64)

        i = np.arange(n)
        signed = parts(x, "i1") * parts(y, "i1")
        unsigned = parts(x, "u1") * parts(y, "u1")
        low = parts(x, "i2") * parts(y, "i1")[:, :2]
        high = parts(x, "u2") * parts(y, "u1")[:, 2:]
        wants = {
            "out": columns((signed.sum(axis=1) + i).astype(np.int32), (low.sum(axis=1) - i).astype(np.int32)),
            "uout": columns((unsigned.sum(axis=1) + 7).astype(np.uint32), (high.sum(axis=1) + 9).astype(np.uint32)),
        }
        return {"x": x, "y": y}, wants

    return _plain("dot_bytes", generator, body)


def predicates(generator: Generator) -> list[Launch]:
    """Boolean formulas over comparisons, NaN included."""

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        a, b = exact.floats(g, n, edges=True), exact.floats(g, n, edges=True)
        b = np.where(g.random(n) < 0.2, a, b).astype(np.float32)
        c = (exact.ints(g, n) >> g.integers(0, 31, n, dtype=np.int32)).astype(np.int32)
        less, equal, unordered = a < b, a == b, np.isnan(a) | np.isnan(b)
        big, odd = c > 100, (c & 1) != 0
        terms = (
            less, equal | (less & odd), unordered != big, ~(a <= b) & (big | ~odd), np.isnan(a) | ((c < -5) & (b > 0)),
            (less ^ odd) & (equal | big), np.isinf(a), np.signbit(b),
        )  # fmt: skip
        bits = np.zeros(n, np.uint32)
        for k, term in enumerate(terms):
            bits |= term.astype(np.uint32) << np.uint32(k)
        return {"x": a, "y": b, "k": c}, {"out": expected(bits)}

    return _plain("predicates", generator, body)


def _sqrt_rz(values: Array) -> Array:
    """sqrt.rz.f32: the float64 root is within half an ulp of float64, so stepping down once is enough."""
    near = np.sqrt(values)
    wide = near.astype(np.float64)
    return np.where(wide * wide > values.astype(np.float64), np.nextafter(near, np.float32(0)), near).astype(np.float32)


def f32_special(generator: Generator) -> list[Launch]:
    """Exact and approximate float functions.

    Bounds: PTX manual, div.approx.f32 (2 ulp for 2^-126 <= |y| <= 2^126, and 0 or NaN above); CUDA C++ Programming
    Guide, mathematical functions: rsqrtf 2 ulp, log2f 1 ulp, exp2f 2 ulp.
    """

    def body(g: Generator, n: int) -> tuple[dict[str, Array], dict[str, Expected]]:
        x, y = exact.floats(g, n, edges=True, scale=8.0), exact.floats(g, n, edges=True, scale=8.0)
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        right = columns(np.sqrt(x), x / y, np.float32(1) / y, _sqrt_rz(x))
        root = (1 / np.sqrt(wide_x)).astype(np.float32)
        log = np.log2(wide_x).astype(np.float32)
        power = np.exp2(wide_y).astype(np.float32)
        quotient = (wide_x / wide_y).astype(np.float32)
        huge = (np.abs(wide_y) > 2.0**126) & np.isfinite(y)
        beyond = np.where(np.isinf(x) | np.isnan(x), np.float32(np.nan), np.copysign(np.float32(0), x) * np.sign(y))
        quotient = np.where(huge, beyond, quotient).astype(np.float32)
        approx = columns(root, log, power, quotient)
        mask = np.ones(len(approx.values), np.bool_)
        mask[3 : 4 * n : 4] = (np.abs(wide_y) >= 2.0**-126) | (y == 0) | np.isnan(y)
        source = "PTX manual div.approx 2 ulp; CPG rsqrtf 2, log2f 1, exp2f 2"
        wants = {"exact": right, "approx": Expected(approx.values, ulp=2, mask=mask, source=source)}
        return {"x": x, "y": y}, wants

    return _plain("f32_special", generator, body)


def struct_param(generator: Generator) -> list[Launch]:
    """A structure by value: char, double, int[5], short, u64 at 0, 8, 16, 36, 40; 48 bytes, aligned to 8."""
    launches = []
    for blocks, threads, n in SHAPES_1D:
        x = exact.ints(generator, n, edges=True)
        table = exact.ints(generator, 5, edges=True)
        tag, first, bias, last = -7, 101, -30000, int(generator.integers(-32768, 32768))
        scale, mask = float(generator.standard_normal()), int(generator.integers(0, 2**64, dtype=np.uint64))
        blob = struct.pack("<b7xd5ih2xQ", tag, scale, *table.tolist(), bias, mask)
        pick = table[x.view(np.uint32) % np.uint32(5)].astype(np.int64).view(np.uint64)
        added = np.uint64((tag + first + bias + last) & (2**64 - 1))
        wants = {
            "out": expected((x & 0xFFFF).astype(np.float64) * scale),
            "bits": expected((np.uint64(mask) ^ pick) + added),
        }
        args: list[Arg] = [
            scalar("first", "int8", first), Scalar("setup", blob, 8, "struct"), inp("x", x), fresh("out", n, "float64"),
            fresh("bits", n, "uint64"), scalar("last", "int16", last), s32("n", n),
        ]  # fmt: skip
        launches.append(Launch("struct_param", f"n={n}", *line(blocks, threads), 0, args, expect=wants))
    return launches


ARITH = (
    bytes_mem, shift64, bitfield, float_conv, minmax, byte_perm, mul_hi, funnel, bit_count, s64_arith, div32, dot_bytes,
    predicates, f32_special, struct_param,
)  # fmt: skip
