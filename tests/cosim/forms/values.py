"""Inputs of the forms, and when two results count as equal."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from stages.interpret.floats import FORMATS, decode, is_nan
from stages.interpret.fpu import BOUNDS, Bound
from stages.interpret.rows import BITS
from tests.cosim.forms.base import PART, Form

Array = np.ndarray[Any, Any]
U64 = np.uint64


def edges(kind: str) -> list[int]:
    """Bit patterns of a type at which behaviour changes."""
    bits = BITS[kind]
    if kind == "pred":
        return [0, 1]
    element = re.sub(r"x[24]$", "", kind)
    if element in FORMATS and element not in ("tf32",):
        f = FORMATS[element]
        one = (1 - f.emin) << f.prec - 1
        top = (1 << f.prec - 1) - 1
        positive = [
            0, 1, 2, top - 1, top, top + 1, top + 2, 2 * (top + 1), one, one - 1, one + 1, one + (1 << f.prec - 2),
            one + top, one + top + 1,
            one - top - 1, f.inf - 1, f.inf, one + (5 << f.prec - 1), one + (16 << f.prec - 1),
                one + (31 << f.prec - 1) + top // 3,
            one + (32 << f.prec - 1), one + (63 << f.prec - 1) + 3, one + (24 << f.prec - 1) + 1, f.nan, f.inf + 1,
        ]  # fmt: skip
        positive = [p for p in positive if 0 <= p < f.sign]
        values = [*positive, *(p | f.sign for p in positive)]
        if element != kind:
            n = int(kind[-1])
            return [
                v | (values[(k * 7 + 3) % len(values)] << f.bits) if n == 2 else v * 0x01010101
                for k, v in enumerate(values)
            ]
        return values
    m = (1 << min(bits, 64)) - 1
    bits = min(bits, 64)
    return [
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        127,
        128,
        255,
        256,
        m,
        m - 1,
        m >> 1,
        (m >> 1) + 1,
        (m >> 1) + 2,
        m // 3,
        m // 5 * 2,
        1 << bits // 2,
        (1 << bits // 2) - 1,
    ]


#: Small numbers of each element type whose products and sums stay exact.
_SMALL: dict[str, list[float]] = {
    "f16": [0, 0.5, 1, -1, 1.5, -2, 2, -0.5], "bf16": [0, 0.5, 1, -1, 1.5, -2, 2, -0.5],
    "tf32": [0, 0.5, 1, -1, 1.5, -2, 3, -0.25],
    "f64": [0, 0.5, 1, -1, 1.5, -2, 3, -0.25], "f32": [0, 0.5, 1, -1, 1.5, -2, 3, 100.25],
    "e4m3": [0, 0.5, 1, -1, 1.5, -2, 2, -0.5],
    "e5m2": [0, 0.5, 1, -1, 1.5, -2, 2, -0.5], "e3m2": [0, 0.5, 1, -1, 1.5, -2, 2, -0.5],
    "e2m3": [0, 0.5, 1, -1, 1.5, -2, 2, -0.5],
    "e2m1": [0, 0.5, 1, -1, 1.5, -2, 2, -0.5],
}  # fmt: skip


def _bits_of(value: float, element: str) -> int:
    """The bit pattern of a number that the format holds exactly."""
    if element == "f64":
        return int(np.float64(value).view(U64))
    f = FORMATS["f32" if element == "tf32" else element]
    patterns = np.arange(1 << f.bits, dtype=U64) if f.bits <= 16 else np.array([np.float32(value).view(np.uint32)], U64)
    values = decode(patterns, f)
    return int(patterns[np.flatnonzero(values == value)[0]])


def _matrix_words(kind: str, n: int, rng: np.random.Generator, nibbles: bool) -> Array:
    """Registers of fragments: elements of a type, packed."""
    element = kind.split(".")[1]
    if element in _SMALL:
        width = 4 if nibbles else {"f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16}.get(element, 8)
        table = np.array([_bits_of(x, element) for x in _SMALL[element]], U64)
        if width == 8 and element in ("e2m1",):
            table = table << U64(2)  # a nibble is in bits 2 to 5 of its byte (documented)
        out = np.zeros(n, U64)
        for k in range(max(32 // width, 1)):
            out |= table[rng.integers(0, len(table), n)] << U64(k * width)
        return out
    words = rng.integers(0, 1 << 32, n, dtype=U64)
    if kind.endswith(".c"):
        words = np.where(
            rng.random(n) < 0.3, rng.choice(np.array([0x7FFFFFFF, 0x80000000, 0x7FFFFF00, 5], U64), n), words
        )
    return words


_PAIRS = (0x4, 0x8, 0xC, 0x9, 0xD, 0xE)


def _metadata(kind: str, n: int, rng: np.random.Generator) -> Array:
    """Words of eight nibbles, each two ordered places among four (documented); for tf32 one of two places of each
    pair."""
    pairs = np.array((0x4, 0xE) if kind.endswith("tf32") else _PAIRS, U64)
    out = np.zeros(n, U64)
    for k in range(8):
        out |= pairs[rng.integers(0, len(pairs), n)] << U64(4 * k)
    return out


def special(kind: str, form: Form, n: int, rng: np.random.Generator) -> Array | None:
    """Values of kinds that are no types."""
    if kind == "lane":
        return rng.integers(0, 40, n, dtype=U64)
    if kind == "clamp":
        return rng.choice(np.array([0x1F, 0x1F, 0x0, 0x1C03, 0x181F, 0x1E01, 0x100F, 0x1F1F, 0x0707], U64), n)
    if kind == "few":
        return (
            rng.choice(np.array([3, 3, 3, 9, 0x80000000], U64), n // 32).repeat(32)
            if n >= 64 and rng.random() < 0.3
            else rng.choice(np.array([3, 3, 3, 9, 0x80000000], U64), n)
        )
    if kind == "few64":
        return rng.choice(np.array([3, 3, 1 << 40 | 3, 9], U64), n)
    if kind == "ones":
        return np.ones(n, U64)
    if kind.startswith("mma."):
        return _matrix_words(kind, n, rng, "mxf4" in form.opcode)
    if kind.startswith("meta."):
        return _metadata(kind, n, rng)
    if kind.startswith("scale."):
        low, high = (126, 129) if kind.endswith("ue8m0") else (0x34, 0x40)
        codes = [low, low + 1, high] if kind.endswith("ue8m0") else [0x30, 0x38, 0x40]
        out = np.zeros(n, U64)
        for k in range(4):
            out |= np.array(codes, U64)[rng.integers(0, 3, n)] << U64(8 * k)
        return out
    return None


def inputs(form: Form, rng: np.random.Generator) -> Array:
    """Sources of all threads, a column each, as uint64."""
    n = form.count
    columns = max(len(form.sources), 1)
    out = rng.integers(0, 1 << 64, (n, columns), dtype=np.uint64)
    for k, kind in enumerate(form.sources):
        values = special(kind, form, n, rng)
        if values is not None:
            out[:, k] = values
            continue
        table = np.array(edges(kind), U64)
        out[:, k] = np.where(rng.random(n) < 0.6, table[rng.integers(0, len(table), n)], out[:, k])
        # Equal exponents make sums and differences interesting.
        element = kind.removesuffix("x2")
        if k and element in ("f32", "f64", "f16", "bf16") and form.sources[k - 1] == kind:
            close = rng.random(n) < 0.2
            out[:, k] = np.where(close, out[:, k - 1] ^ rng.integers(0, 1 << 12, n, dtype=U64), out[:, k])
        if kind == "u32" and k:
            out[:, k] = np.where(rng.random(n) < 0.4, rng.integers(0, 70, n, dtype=U64), out[:, k])
        if element in ("f32", "f64") and form.name in ("cvt", "sin", "cos", "ex2", "tanh", "set", "setp"):
            near = rng.random(n) < 0.35
            scale = rng.choice([1.0, 10.0, 300.0, 70000.0, 3e9, 1e19], n)
            value = np.round((rng.random(n) - 0.5) * scale, 0) / rng.choice([1, 2, 4, 3], n)
            bits = value.astype(np.float32).view(np.uint32).astype(U64) if element == "f32" else value.view(U64)
            out[:, k] = np.where(near, bits, out[:, k])
    if form.name in ("sin", "cos"):  # no bound is documented beyond 100 pi
        x = out[:, 0].astype(np.uint32).view(np.float32)
        out[:, 0] = np.where(np.isfinite(x) & (np.abs(x) > 300), U64(0x40490FDB), out[:, 0])
    if form.name == "fns":
        out[:, 1] &= U64(31)  # other values: undefined (documented)
    if form.name in ("div", "rem") and form.sources[0][0] in "us":
        low = U64((1 << BITS[form.sources[1]]) - 1)
        out[:, 1] = np.where(out[:, 1] & low == 0, U64(3), out[:, 1])  # division by zero is unspecified
    return out


def memory(form: Form, data: Array, rng: np.random.Generator) -> Array:
    """The third buffer: bytes, `PART` per thread. For compare-and-swap half of the threads find the expected value."""
    n = form.count
    out = rng.integers(0, 256, n * PART, dtype=np.uint8)
    kind = form.memory
    element = re.sub(r"x[24]$", "", kind)
    if element in FORMATS and BITS.get(kind, 8) >= 16:
        size = BITS[kind] // 8
        table = np.array(edges(kind), U64)
        values = table[rng.integers(0, len(table), len(out) // size)]
        out = values.astype({2: np.uint16, 4: np.uint32, 8: np.uint64}[size]).view(np.uint8).copy()
    if "cas" in form.extra:
        at, size = int(form.extra["cas"]), min(BITS[kind] // 8, 8)
        words = out.reshape(n, PART)
        hit = rng.random(n) < 0.5
        columns = 2 if kind == "b128" else 1
        for c in range(columns):
            have = (
                words[:, at + 8 * c : at + 8 * c + size]
                .copy()
                .view({2: np.uint16, 4: np.uint32, 8: np.uint64}[size])[:, 0]
                .astype(U64)
            )
            data[:, c] = np.where(hit, have, data[:, c])
    return out


# --------------------------------------------------------------------------- comparison


def bound(form: Form) -> Bound | None:
    """The error that the manual allows."""
    if form.opcode.startswith(("div.full", "div.approx")):
        return Bound(ulp=2)
    return BOUNDS.get(form.opcode) or BOUNDS.get(form.opcode.replace(".ftz", ""))


def _elements(bits: Array, kind: str) -> list[tuple[Array, Any]]:
    """(bits, format or None) of each element of a result."""
    element = re.sub(r"x[24]$", "", kind)
    if element == "tf32":
        return [(bits & U64(0xFFFFFFFF), FORMATS["f32"])]
    if element not in FORMATS or BITS[kind] == 8:
        low = (1 << max(min(BITS.get(kind, 32), 64), 16)) - 1 if kind != "b8" else 0xFF
        return [(bits & U64(low), None)]
    f = FORMATS[element]
    count = int(kind[-1]) if element != kind else 1
    return [((bits >> U64(k * f.bits)) & U64((1 << f.bits) - 1), f) for k in range(count)]


def differ(a: Array, b: Array, kind: str, limit: Bound | None = None) -> Array:
    """Which values of a kind differ. All NaNs are equal; approximations are equal within their bound."""
    bad = np.zeros(a.shape, np.bool_)
    for (p, f), (q, _) in zip(_elements(a, kind), _elements(b, kind), strict=True):
        d = p != q
        if f is not None and f.kind != "finite":
            d &= ~(is_nan(p, f) & is_nan(q, f))
            if limit is not None and d.any():
                with np.errstate(all="ignore"):
                    x, y = decode(p, f), decode(q, f)
                    step = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(x), 2.0**f.emin))) - f.prec + 1)
                    room = np.maximum.reduce([limit.rel * np.abs(x), np.full(x.shape, limit.abs), limit.ulp * step])
                    d &= ~(np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= room))
        bad |= d
    return bad


def wrong(form: Form, want: tuple[Array, Array], got: tuple[Array, Array]) -> Array:
    """Which threads disagree, in results or memory."""
    bad = np.zeros(form.count, np.bool_)
    limit = bound(form)
    for k, kind in enumerate(form.dests):
        bad |= differ(want[0][:, k], got[0][:, k], kind, limit)
    if form.memory and not form.ignore_memory:
        size = BITS.get(form.memory, 8) // 8
        kind, view = (
            (form.memory, {2: np.uint16, 4: np.uint32, 8: np.uint64}[size]) if size in (2, 4, 8) else ("b8", np.uint8)
        )
        a, b = (x[1].view(view).astype(U64).reshape(form.count, -1) for x in (want, got))
        bad |= differ(a, b, kind).any(1)
    return bad
