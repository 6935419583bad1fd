"""Float formats: their bits, the host's C, rounding by exact fractions, and the sources of expected values."""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.edges.form import bits

C: Final = "C on the host"
NUMPY: Final = "numpy"
NARROW: Final = "ml_dtypes"
EXACT: Final = "exact fractions"
TABLE: Final = "the manual's table"
MODES: Final = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}
_OPS: Final = {"add": 0, "sub": 1, "mul": 2, "fma": 3, "div": 4, "sqrt": 5, "rint": 6}
#: Exponent mask, sign, the canonical NaN of results.
PARTS: Final = {
    "f16": (0x7C00, 0x8000, 0x7FFF),
    "bf16": (0x7F80, 0x8000, 0x7FFF),
    "f32": (0x7F800000, 1 << 31, 0x7FFFFFFF),
    "f64": (0x7FF << 52, 1 << 63, 0x7FF8 << 48),
}
_NUMPY: Final[dict[str, Any]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


@cache
def host() -> Any:
    """The library of `host.c`."""
    folder = tempfile.mkdtemp()
    out = Path(folder) / "host.so"
    subprocess.run(
        [
            "cc",
            "-O1",
            "-frounding-math",
            "-ffp-contract=off",
            "-fPIC",
            "-shared",
            str(Path(__file__).with_name("host.c")),
            "-o",
            str(out),
            "-lm",
        ],
        check=True,
        timeout=60,
    )
    lib = ctypes.CDLL(str(out))
    for name in ("f32_op", "f64_op"):
        getattr(lib, name).restype = ctypes.c_uint64
        getattr(lib, name).argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]
    lib.convert.restype = ctypes.c_uint64
    lib.convert.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint64]
    return lib


def is_nan(x: int, t: str) -> bool:
    exponent, sign, _ = PARTS[t]
    return x & (sign - 1) > exponent


def is_small(x: int, t: str) -> bool:
    """Subnormal or zero."""
    return not x & PARTS[t][0]


def flushed(x: int, t: str) -> int:
    """Subnormal numbers become zeros of their sign."""
    return x & PARTS[t][1] if is_small(x, t) else x


def number(x: int, t: str) -> Any:
    """Bits as a Python float (exact: f64 represents all of them)."""
    if t == "bf16":
        return float(np.array(x << 16, np.uint32).view(np.float32))
    return float(np.array(x, f"u{bits(t) // 8}").view(_NUMPY[t]))


def saturated(x: int, t: str) -> int:
    """.sat: [0, 1], NaN gives +0."""
    one = {"f32": 0x3F800000, "f64": 0x3FF0 << 48, "f16": 0x3C00}[t]
    return 0 if is_nan(x, t) or x & PARTS[t][1] else min(x, one)


def arith(op: str, t: str, mode: str, ftz: bool, sat: bool) -> Callable[..., int]:
    def answer(a: int, b: int = 0, c: int = 0) -> int:
        args = [flushed(x, t) for x in (a, b, c)] if ftz else [a, b, c]
        r = getattr(host(), f"{t}_op")(_OPS[op], MODES[mode], *args)
        if is_nan(r, t):
            r = PARTS[t][2]
        r = flushed(r, t) if ftz else r
        return saturated(r, t) if sat else r

    return answer


def to_half(x: float | Fraction, mode: str) -> int:
    """Bits of the f16 nearest to a number in a rounding direction, by exact fractions."""
    if not isinstance(x, Fraction) and (math.isnan(x) or math.isinf(x)):
        return 0x7FFF if math.isnan(x) else 0x7C00 if x > 0 else 0xFC00
    sign = 0x8000 if (x < 0 or (not isinstance(x, Fraction) and math.copysign(1.0, x) < 0)) else 0
    f = abs(Fraction(x))
    exponent = -14
    while f >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - 10)
    q = f / step
    whole = math.floor(q)
    up = {
        "rn": q - whole > Fraction(1, 2) or (q - whole == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": bool(sign) and q != whole,
        "rp": not sign and q != whole,
    }[mode]
    v = (whole + up) * step
    top = Fraction(65504)
    if v > top:
        return sign | (0x7BFF if mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and sign) else 0x7C00)
    return sign | int(np.array(float(v), np.float16).view(np.uint16))
