"""The exact arithmetic and the comparison, against plain Python on rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels import cases, cases_corpus, cases_hand, cases_loops, cases_tensor, exact
from tests.kernels.model import Array, Expected, Launch, check, compare

ALL = {**cases.CASES, **cases_corpus.CASES, **cases_hand.CASES, **cases_loops.CASES, **cases_tensor.CASES}

#: (precision in bits, smallest exponent of a unit in the last place, largest finite exponent)
FORMATS = {"float16": (11, -24, 15), "float32": (24, -149, 127), "float64": (53, -1074, 1023)}


def round_to(value: Fraction, dtype: str) -> float:
    """Round to nearest even by integer arithmetic."""
    precision, low, top = FORMATS[dtype]
    if value == 0:
        return 0.0
    size, sign = abs(value), -1.0 if value < 0 else 1.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = max(exponent - precision + 1, low)
    scaled = size / Fraction(2) ** unit
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1):
        whole += 1
    if whole and whole * Fraction(2) ** unit >= Fraction(2) ** (top + 1):
        return sign * math.inf
    return sign * math.ldexp(whole, unit)


def plain_fma(a: float, b: float, c: float, dtype: str) -> float:
    """fma on finite values whose exact result is not zero."""
    return round_to(Fraction(a) * Fraction(b) + Fraction(c), dtype)


def _bits(width: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**width - 1)


def _float(bits: int, dtype: str) -> Any:
    kind = np.dtype(dtype)
    return np.array(bits, f"u{kind.itemsize}").view(kind)[()]


def _check_fma(bits: tuple[int, int, int], dtype: str) -> None:
    a, b, c = (_float(v, dtype) for v in bits)
    if not all(np.isfinite(v) for v in (a, b, c)):
        return
    got = (exact.fma64(a, b, c) if dtype == "float64" else exact.fma(a, b, c, dtype))[()]
    if Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) == 0:
        assert got == 0
        return
    want = np.array(plain_fma(float(a), float(b), float(c), dtype), dtype)[()]
    assert got == want and np.signbit(got) == np.signbit(want)


@given(st.tuples(_bits(32), _bits(32), _bits(32)))
@example((0x3F800001, 0x3F800001, 0x33800000))
@example((0x00800000, 0x3F000001, 0x80000001))
@settings(max_examples=400, deadline=None)
def test_fma_float32(bits: tuple[int, int, int]) -> None:
    _check_fma(bits, "float32")


@given(st.tuples(_bits(16), _bits(16), _bits(16)))
@settings(max_examples=400, deadline=None)
def test_fma_float16(bits: tuple[int, int, int]) -> None:
    _check_fma(bits, "float16")


@given(st.tuples(_bits(64), _bits(64), _bits(64)))
@settings(max_examples=200, deadline=None)
def test_fma_float64(bits: tuple[int, int, int]) -> None:
    _check_fma(bits, "float64")


def test_fma_needs_one_rounding() -> None:
    """Cases in which rounding in double first gives another float; the helper must not do that."""
    generator = np.random.default_rng(5)
    different = 0
    for _ in range(3000):
        a, b = (np.float32(1 + generator.integers(0, 2**23) * 2.0**-23) for _ in range(2))
        c = np.float32(2.0 ** int(generator.integers(-32, -24)) * (1 + generator.integers(0, 2**23) * 2.0**-23))
        want = np.float32(plain_fma(float(a), float(b), float(c), "float32"))
        assert exact.fma(a, b, c)[()] == want
        different += np.float32(np.float64(a) * np.float64(b)) + c != want
    assert different > 100


@given(
    st.integers(-(10**30), 10**30),
    st.integers(1, 10**30),
    st.integers(-1100, 1000),
    st.sampled_from(["float32", "float64"]),
)
@settings(max_examples=300, deadline=None)
def test_directed_rounding(numerator: int, denominator: int, shift: int, dtype: str) -> None:
    """Down and up enclose the value as neighbours, towards zero is the smaller, nearest is one of them."""
    value = Fraction(numerator, denominator) * Fraction(2) ** shift
    down, up, zero, near = (cases_hand.round_fraction(value, dtype, mode) for mode in ("rm", "rp", "rz", "rn"))
    assert near == round_to(value, dtype)
    kind = np.dtype(dtype).type
    assert all(float(kind(v)) == v for v in (down, up))
    assert (down == -math.inf or Fraction(down) <= value) and (up == math.inf or value <= Fraction(up))
    if math.isfinite(down) and Fraction(down) == value:
        assert up == down
    else:
        with np.errstate(over="ignore"):
            assert np.nextafter(kind(down), kind(np.inf)) == up
    assert zero == (down if value > 0 else up) and near in (down, up)


def test_small_floats() -> None:
    """Encoding and decoding against numpy's half type, and known values of formats that numpy lacks."""
    for code in range(1 << 16):
        value = float(np.array(code, np.uint16).view(np.float16))
        if value == value:
            assert cases_tensor.encode(value, "f16") == code and cases_tensor.decode(code, "f16") == value
    generator = np.random.default_rng(4)
    for value in (generator.standard_normal(3000) * 10.0 ** generator.integers(-9, 6, 3000)).tolist():
        with np.errstate(over="ignore"):
            assert cases_tensor.encode(value, "f16") == int(np.float16(value).view(np.uint16))
    assert cases_tensor.encode(1e9, "e4m3", saturate=True) == 0x7E and cases_tensor.decode(0x7E, "e4m3") == 448
    assert cases_tensor.encode(1e9, "e5m2", saturate=True) == 0x7B and cases_tensor.decode(0x7B, "e5m2") == 57344
    assert cases_tensor.encode(2.0**-10, "e4m3") == 0 and cases_tensor.encode(3 * 2.0**-11, "e4m3") == 1
    assert cases_tensor.encode(3.4e38, "bf16", "rz") == 0x7F7F and cases_tensor.encode(3.4e38, "bf16") == 0x7F80
    assert cases_tensor.encode(1 + 2.0**-11, "tf32", "rna") == cases_tensor.encode(1 + 2.0**-10, "tf32")


def test_special_values() -> None:
    inf, nan = math.inf, math.nan
    assert np.isnan(exact.fma64(inf, 0.0, 1.0))
    assert np.isnan(exact.fma64(inf, 1.0, -inf))
    assert exact.fma64(1e200, 1e200, -inf) == -inf
    assert exact.fma64(1e200, 1e200, -1e300) == inf
    assert np.signbit(exact.fma64(-0.0, 1.0, -0.0)) and not np.signbit(exact.fma64(-0.0, 1.0, 0.0))
    assert not np.signbit(exact.fma64(2.0, 3.0, -6.0))
    assert exact.max_f32(nan, 2.0) == 2 and exact.min_f32(2.0, nan) == 2
    assert not np.signbit(exact.max_f32(-0.0, 0.0)) and np.signbit(exact.min_f32(0.0, -0.0))
    assert np.signbit(exact.ftz(-1e-40)) and exact.ftz(-1e-40) == 0
    assert exact.trunc_div(np.array([-7, 7, -8], np.int32), np.array([2, -2, 3], np.int32)).tolist() == [-3, -3, -2]


# --- whole kernels in plain Python --------------------------------------------------------------------------------


def _inputs(launch: Launch) -> dict[str, list[Any]]:
    return {name: buffer.data.tolist() for name, buffer in launch.buffers().items()}


def _finite(*values: float) -> bool:
    return all(math.isfinite(v) for v in values)


def test_float_kernels_in_rationals() -> None:
    """saxpy, f64_ops and half2_ops, element by element; each must meet many finite elements."""
    met = {"saxpy": 0, "f64_ops": 0, "half2_ops": 0}
    for launch in cases.CASES["saxpy"].launches(3):
        data = _inputs(launch)
        a = float(np.frombuffer(launch.args[0].data, np.float32)[0])
        for i, x in enumerate(data["x"]):
            y = data["y"][i]
            if _finite(a, x, y) and Fraction(a) * Fraction(x) + Fraction(y) != 0:
                assert float(launch.expect["y"].values[i]) == plain_fma(a, x, y, "float32")
                met["saxpy"] += 1
    for launch in cases.CASES["f64_ops"].launches(3):
        data, want = _inputs(launch), launch.expect
        for i, (a, b, c) in enumerate(zip(data["a"], data["b"], data["c"], strict=True)):
            if _finite(a, b, c) and b != 0 and a > 0:
                assert float(want["out_fma"].values[i]) == plain_fma(a, b, c, "float64")
                assert float(want["out_div"].values[i]) == round_to(Fraction(a) / Fraction(b), "float64")
                root = Fraction(float(want["out_sqrt"].values[i]))
                half = Fraction(math.ulp(float(root))) / 2
                assert (root - half) ** 2 <= Fraction(a) <= (root + half) ** 2
                met["f64_ops"] += 1
    for launch in cases.CASES["half2_ops"].launches(3):
        data, want = _inputs(launch), launch.expect
        for i, (a, b, c) in enumerate(zip(data["a"], data["b"], data["c"], strict=True)):
            if _finite(a, b, c) and a * b != 0 and Fraction(a) * Fraction(b) + Fraction(c) != 0:
                assert float(want["fused"].values[i]) == plain_fma(a, b, c, "float16")
                assert float(want["prod"].values[i]) == round_to(Fraction(a) * Fraction(b), "float16")
                assert float(want["sum"].values[i]) == round_to(Fraction(a) + Fraction(b), "float16")
                met["half2_ops"] += 1
    assert min(met.values()) > 50, met


def test_matmul_and_mandelbrot_in_rationals() -> None:
    launch = cases.CASES["matmul"].launches(1)[2]  # 33 x 20 x 17
    data = _inputs(launch)
    for row, col in ((0, 0), (32, 19), (15, 16), (16, 3)):
        acc = 0.0
        for k in range(17):
            acc = plain_fma(data["a"][row * 17 + k], data["b"][k * 20 + col], acc, "float32")
        assert float(launch.expect["c"].values[row * 20 + col]) == acc
    launch = cases.CASES["mandelbrot"].launches(1)[0]
    x0, y0, step = (float(np.frombuffer(arg.data, np.float32)[0]) for arg in launch.args[3:6])
    for px, py in ((0, 0), (7, 6), (10, 6), (14, 12)):

        def rounded(value: Fraction) -> Fraction:
            return Fraction(round_to(value, "float32"))

        cx, cy = (rounded(p * Fraction(step) + Fraction(o)) for p, o in ((px, x0), (py, y0)))
        zx = zy = Fraction(0)
        count = 0
        while count < 40:
            xx, yy = rounded(zx * zx), rounded(zy * zy)
            if rounded(xx + yy) > 4:
                break
            zy = rounded(rounded(zx + zx) * zy + cy)
            zx = rounded(rounded(xx - yy) + cx)
            count += 1
        assert int(launch.expect["counts"].values[py * 15 + px]) == count


def test_divrem64_in_integers() -> None:
    checked = 0
    for launch in cases.CASES["divrem64"].launches(2):
        data, want = _inputs(launch), launch.expect
        for i, (a, b) in enumerate(zip(data["a"], data["b"], strict=True)):
            masks = {name: bool(want[name].mask[i]) for name in want}  # type: ignore[index]
            assert masks["uq"] == (b != 0)
            if b != 0:
                assert (int(want["uq"].values[i]), int(want["ur"].values[i])) == divmod(a, b)
            sa, sb = (v - 2**64 if v >> 63 else v for v in (a, b))
            if masks["sq"]:
                q, r = int(want["sq"].values[i]), int(want["sr"].values[i])
                assert q * sb + r == sa and abs(r) < abs(sb) and (r == 0 or (r < 0) == (sa < 0))
                checked += 1
    assert checked > 150


# --- the comparison ---------------------------------------------------------------------------------------------------


def _right(launch: Launch) -> tuple[dict[str, Array], dict[str, Array]]:
    return (
        {name: want.values.copy() for name, want in launch.expect.items()},
        {name: want.values.copy() for name, want in launch.expect_globals.items()},
    )


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_output_is_checked(name: str) -> None:
    """One flipped top bit in any output is found, wherever it is, guard elements included."""
    generator = np.random.default_rng(11)
    launches = ALL[name].launches(0)
    assert len(launches) >= 3
    for launch in launches:
        outputs, symbols = _right(launch)
        assert set(outputs) == {b.name for b in launch.buffers().values() if b.output}
        assert check(launch, outputs, symbols) == []
        for key, want in launch.expect.items():
            places = np.flatnonzero(want.mask) if want.mask is not None else np.arange(want.values.size)
            for place in {int(generator.choice(places)), want.values.size - 1}:
                changed = {**outputs, key: outputs[key].copy()}
                raw = changed[key].view(f"u{want.values.dtype.itemsize}")
                if want.values.dtype.kind == "f" and np.isnan(want.values[place]):
                    raw[place] = 0
                elif want.values.dtype.kind == "f" and want.values[place] == 0 and (want.ulp or want.rel):
                    changed[key][place] = 1
                else:
                    raw[place] ^= 1 << (8 * want.values.dtype.itemsize - 1)
                assert check(launch, changed, symbols), (launch.label, key, place)
        missing = dict(outputs)
        missing.pop(next(iter(missing)))
        assert check(launch, missing, symbols)
        for key, want in launch.expect_globals.items():
            assert check(launch, outputs, {**symbols, key: want.values + 1})


def test_unchanged_inputs() -> None:
    launch = cases.CASES["vadd"].launches(0)[2]
    outputs, _ = _right(launch)
    same = launch.buffers()["a"].data
    assert check(launch, {**outputs, "a": same}) == []
    other = same.copy()
    other.view(np.uint32)[1] ^= 1
    assert check(launch, {**outputs, "a": other})


def test_comparison_applies_its_bounds() -> None:
    one = np.array([1.0, 0.0, -0.0, np.inf], np.float32)
    up = np.nextafter(one, np.float32(10))
    assert compare("x", Expected(one, ulp=1), up) == []
    assert compare("x", Expected(one, ulp=1), np.nextafter(up, np.float32(10)))
    assert compare("x", Expected(one), -one)
    assert compare("x", Expected(one, ulp=1), np.array([np.nan, 0, 0, np.inf], np.float32))
    assert compare("x", Expected(one, rel=1e-6), np.array([1.0000005, 0, 0, np.inf], np.float32)) == []
    assert compare("x", Expected(one, rel=1e-6), np.array([1.00001, 0, 0, np.inf], np.float32))
    assert compare("x", Expected(one), one.astype(np.float64))


def test_same_seed_same_bytes() -> None:
    for spec in ALL.values():
        first, again, other = spec.launches(7), spec.launches(7), spec.launches(8)
        blobs = [
            b"".join(bytes(arg.data) for launch in launches for arg in launch.args)
            for launches in (first, again, other)
        ]
        assert blobs[0] == blobs[1]
        assert blobs[0] != blobs[2] or spec.name == "index3d", spec.name
