"""Products of matrices: HMMA, QMMA, OMMA, IMMA, BMMA, DMMA (tiles: :mod:`ops_tiles`).

Fragments (PTX manual): lane = 4 g + t. Register r of A holds row g + 8 (r & 1) (m16; m8: row g), and of k block r >> 1
(m8: r) the elements t e .. t e + e - 1, e elements a register; B likewise with column g; C and D hold columns 2 t and 2
t + 1 of rows g and g + 8. Floating products are summed in double and rounded once to the accumulator's type; the
hardware's order and truncation are not modelled.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ir_format.model import ZERO, Imm, Operand, Reg
from stages.simulate import fp, ops_tiles
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, InstFn, View, put
from stages.simulate.exact import BF16, F16

u8, u16, u32, u64, i64, f32, f64 = np.uint8, np.uint16, np.uint32, np.uint64, np.int64, np.float32, np.float64

#: shape name -> (m, n, k)
_SHAPES: Final[dict[str, tuple[int, int, int]]] = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32), "16864": (16, 8, 64),
    "168128": (16, 8, 128),
    "168256": (16, 8, 256), "8816": (8, 8, 16), "8832": (8, 8, 32), "88128": (8, 8, 128), "884": (8, 8, 4),
    "8x8x4": (8, 8, 4),
    "16x8x4": (16, 8, 4), "16x8x8": (16, 8, 8), "16x8x16": (16, 8, 16),
}  # fmt: skip


def _table(exponent: int, fraction: int, nan: str) -> Arr:
    """Values of the 256 bytes whose low bits are a small float: sign, exponent, fraction."""
    bits = 1 + exponent + fraction
    code = np.arange(256) & ((1 << bits) - 1)
    field, man = (code >> fraction) & ((1 << exponent) - 1), code & ((1 << fraction) - 1)
    bias = (1 << (exponent - 1)) - 1
    value = np.where(field > 0, (1 << fraction) + man, man) * 2.0 ** (np.maximum(field, 1) - bias - fraction)
    top = field == (1 << exponent) - 1
    if nan == "ieee":
        value = np.where(top, np.where(man == 0, np.inf, np.nan), value)
    elif nan == "one":
        value = np.where(top & (man == (1 << fraction) - 1), np.nan, value)
    return np.asarray(np.where(code >> (bits - 1) != 0, -value, value))


#: Small floats by name: the value of each byte.
_SMALL: Final[dict[str, Arr]] = {
    "E4M3": _table(4, 3, "one"), "E5M2": _table(5, 2, "ieee"), "E3M2": _table(3, 2, ""), "E2M3": _table(2, 3, ""),
    "E2M1": _table(2, 1, ""),
}  # fmt: skip


def _words(v: View, rows: list[int]) -> Arr:
    """[warp, lane, register] words."""
    return np.stack([v.U[r] for r in rows], axis=1).reshape(-1, 32, len(rows))


def elements(words: Arr, bits: int, kind: str) -> Arr:
    """[warp, lane, register, element] numbers: float64 or int64."""
    flat = np.ascontiguousarray(words)
    if kind == "F16":
        return fp.decode_half(flat.view(u16), F16).reshape(*words.shape, 2)
    if kind == "BF16":
        return fp.decode_half(flat.view(u16), BF16).reshape(*words.shape, 2)
    if kind == "TF32":
        return (flat & u32(0xFFFFE000)).view(f32).astype(f64).reshape(*words.shape, 1)
    if kind in _SMALL:
        # A 4-bit number is in bits 2 to 5 of its byte, a 6-bit number in the lower bits (documented).
        codes = flat.view(u8) >> u8(2) if kind == "E2M1" else flat.view(u8)
        return _SMALL[kind][codes].reshape(*words.shape, 4)
    if bits == 8:
        return flat.view(np.int8 if kind[0] == "S" else u8).astype(i64).reshape(*words.shape, 4)
    if bits == 4:
        out = (flat[..., None] >> (u32(4) * np.arange(8, dtype=u32))) & u32(15)
        numbers = out.astype(i64)
        return np.asarray(np.where(numbers >= 8, numbers - 16, numbers) if kind[0] == "S" else numbers)
    return ((flat[..., None] >> np.arange(32, dtype=u32)) & u32(1)).astype(i64)


def fragment_matrix(x: Arr, m: int, k: int, is_a: bool) -> Arr:
    """[warp, rows, k] from fragments [warp, 4 g + t, register, element]; for B the "rows" are its columns."""
    w, _, registers, e = x.shape
    y = x.reshape(w, 8, 4, registers, e)
    if is_a and m == 16:
        # registers run (block, half): row = g + 8 half, k = block 4 e + t e + i
        y = y.reshape(w, 8, 4, registers // 2, 2, e).transpose(0, 4, 1, 3, 2, 5)
        return np.ascontiguousarray(y).reshape(w, 16, k)
    return np.ascontiguousarray(y.transpose(0, 1, 3, 2, 4)).reshape(w, 8, k)


def _accumulator(x: Arr, m: int) -> Arr:
    """[warp, m, 8] from [warp, 4 g + t, value]: values (half, pair)."""
    w = x.shape[0]
    halves = m // 8
    return np.ascontiguousarray(x.reshape(w, 8, 4, halves, 2).transpose(0, 3, 1, 2, 4)).reshape(w, m, 8)


def _scatter(x: Arr, m: int) -> Arr:
    """The inverse of :func:`_accumulator`."""
    w = x.shape[0]
    halves = m // 8
    return np.ascontiguousarray(x.reshape(w, halves, 8, 4, 2).transpose(0, 2, 3, 1, 4)).reshape(w, 32, halves * 2)


def _rows(b: Build, op: Operand, n: int) -> list[int]:
    if isinstance(op, Reg) and op.num == ZERO:
        return [b.row(op)] * n
    return [b.row(op, i) for i in range(n)]


def _shape(b: Build) -> tuple[int, int, int]:
    for mod in b.inst.mods:
        if mod in _SHAPES:
            return _SHAPES[mod]
    raise b.refuse("shape")


def dense(packed: Arr, words: Arr, kind: str, bits: int, selector: int) -> Arr:
    """A of full width from its stored half ([warp, rows, k / 2]) and the words of metadata ([warp, 32]).

    A nibble of metadata gives the positions of the stored elements of four columns (tf32: two; 4 bits: eight, in
    pairs), two bits each. Sixteen-bit and wider types: a word has four nibbles of row g, then four of row g + 8; the
    lanes of a group of four go along the columns. Narrower types: eight nibbles of one row; the odd lanes have row g +
    8. If fewer lanes than four suffice, the selector says which (documented for PTX; the same numbers are in the
    code)."""
    w, m, half = packed.shape
    wide = bits >= 16
    nibbles = half if kind == "TF32" else half // 2 if bits > 4 else half // 4  # in a row
    lanes = -(-nibbles // 4) if wide else 2 * (-(-nibbles // 8))
    quads = (
        words.reshape(w, 8, 4)[:, :, lanes * selector : lanes * selector + lanes]
        if lanes < 4
        else words.reshape(w, 8, 4)
    )
    digits = (quads[..., None] >> (u32(4) * np.arange(8, dtype=u32))) & u32(15)  # [warp, g, lane, nibble]
    if wide:
        rows = digits.reshape(w, 8, lanes, 2, 4).transpose(0, 3, 1, 2, 4).reshape(w, 16, lanes * 4)
    else:
        rows = digits.reshape(w, 8, lanes // 2, 2, 8).transpose(0, 3, 1, 2, 4).reshape(w, 16, lanes * 4)
    rows = rows[:, :m, :nibbles].astype(i64)
    out = np.zeros((w, m, 2 * half), packed.dtype)
    wi, mi, ni = np.ogrid[:w, :m, :nibbles]
    if kind == "TF32":
        out[wi, mi, 2 * ni + (rows >> 3)] = packed
        return out
    unit = 2 if bits == 4 else 1
    parts = packed.reshape(w, m, nibbles, 2, unit)
    for j in (0, 1):
        place = (rows >> (2 * j)) & 3
        for i in range(unit):
            out[wi, mi, 4 * unit * ni + unit * place + i] = parts[:, :, :, j, i]
    return out


class _Sparse:
    """The metadata operand and selector of an .SP form; other forms have none."""

    def __init__(self, b: Build, values: list[Reg], kind: str, bits: int) -> None:
        self.on = "SP" in b.mods
        self.kind, self.bits = kind, bits
        if self.on:
            self.row = b.row(values[3])
            number = [o.value for o in b.s if isinstance(o, Imm)]
            if not number:
                raise b.refuse("no selector")
            self.selector = number[-1]

    def a(self, v: View, packed: Arr) -> Arr:
        """A as the product needs it."""
        if not self.on:
            return packed
        return dense(packed, v.U[self.row].reshape(-1, 32), self.kind, self.bits, self.selector)


def _store(v: View, rows: list[int], words: Arr, m: Arr | None) -> None:
    flat = words.reshape(-1, len(rows))
    for i, row in enumerate(rows):
        put(v.U[row], flat[:, i], m)


def hmma(b: Build) -> InstFn:
    """Half, bfloat16, TF32 or FP8 products, float32 or half sums."""
    b.only(*_SHAPES, "F16", "F32", "BF16", "TF32", "SP", *_SMALL)
    m, _, k = _shape(b)
    mods = [x for x in b.inst.mods if x not in _SHAPES and x != "SP"]
    half_sum = mods[:1] == ["F16"]
    kinds = [x for x in mods[1:] if x != "F32"] or ["F16"]
    kind_a, kind_b = kinds[0], kinds[-1]
    bits = 32 if kind_a == "TF32" else 8 if kind_a in _SMALL else 16
    values = [o for o in b.s if isinstance(o, Reg)]
    sparse = _Sparse(b, values, kind_a, bits)
    stored = k // 2 if sparse.on else k
    na, nb = m * stored * bits // 1024, 8 * k * bits // 1024
    ra, rb = _rows(b, values[0], na), _rows(b, values[1], nb)
    nc = m // 8 if half_sum else m // 4
    rc, rd = _rows(b, values[2], nc), [b.dst(i) for i in range(nc)]

    def run(v: View, mask: Arr | None) -> None:
        a = sparse.a(v, fragment_matrix(elements(_words(v, ra), bits, kind_a), m, stored, True))
        bb = fragment_matrix(elements(_words(v, rb), bits, kind_b), 8, k, False)
        cw = _words(v, rc)
        if half_sum:
            c = _accumulator(fp.decode_half(np.ascontiguousarray(cw).view(u16), F16), m)
        else:
            c = _accumulator(np.ascontiguousarray(cw).view(f32).astype(f64), m)
        d = _scatter(a @ bb.transpose(0, 2, 1) + c, m)
        if half_sum:
            out = np.ascontiguousarray(fp.to_f16(d)).view(u32)
        else:
            out = fp.round_f32(d).view(u32)
        _store(v, rd, out, mask)

    return run


def _scale_factors(codes: Arr, kind: str) -> Arr:
    """Values of scale bytes: exponents (E8), or E4M3 without a sign."""
    if kind == "E8":
        return np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int32) - 127))
    return np.asarray(_SMALL["E4M3"][codes & u32(0x7F)])


def scaled(b: Build) -> InstFn:
    """OMMA.SF (4-bit floats), QMMA.SF (bytes): blocks of k with a factor for each row of A and each column of B.

    The uniform word: bits 0-1 the first byte of A's factors, 2 the pair of lanes of four that has them, 3-4 the first
    byte of B's factors, 5-6 the lane that has them (measured: ptxas packs the selectors of PTX so)."""
    words = list(b.inst.mods)
    shape = next((x for x in words if x in _SHAPES), "")
    kinds = [x for x in words if x in _SMALL]
    scale_kind = next((x for x in words if x in ("E8", "UE4M3")), "")
    blocks = next((int(x[0]) for x in words if x in ("1X", "2X", "4X")), 2 if b.inst.op == "OMMA" else 1)
    if (
        not shape
        or not kinds
        or not scale_kind
        or any(x not in (*_SHAPES, *_SMALL, "SF", "SP", "F32", "E8", "UE4M3", "1X", "2X", "4X") for x in words)
    ):
        raise b.refuse()
    m, _, k = _SHAPES[shape]
    bits = 4 if b.inst.op == "OMMA" else 8
    values = [o for o in b.s if isinstance(o, Reg) and o.file == "R"]
    uniform = [o for o in b.s if isinstance(o, Reg) and o.file == "UR"]
    sparse = _Sparse(b, values, kinds[0], bits)
    stored = k // 2 if sparse.on else k
    ra, rb = _rows(b, values[0], m * stored * bits // 1024), _rows(b, values[1], 8 * k * bits // 1024)
    rc, rd = _rows(b, values[2], m // 4), [b.dst(i) for i in range(m // 4)]
    sa, sb = b.row(values[3], 1 if sparse.on else 0), b.row(values[4])
    selector = b.row(uniform[0])

    def numbers(v: View, rows: list[int], kind: str) -> Arr:
        words_ = _words(v, rows)
        if bits == 8:
            return elements(words_, 8, kind)
        nibbles = (np.ascontiguousarray(words_)[..., None] >> (u32(4) * np.arange(8, dtype=u32))) & u32(15)
        return np.asarray(_SMALL["E2M1"][nibbles])

    def run(v: View, mask: Arr | None) -> None:
        a = sparse.a(v, fragment_matrix(numbers(v, ra, kinds[0]), m, stored, True))
        bb = fragment_matrix(numbers(v, rb, kinds[-1]), 8, k, False)
        total = _accumulator(np.ascontiguousarray(_words(v, rc)).view(f32).astype(f64), m)
        word = int(v.U[selector][0])
        quads_a, quads_b = (v.U[r].reshape(-1, 8, 4) for r in (sa, sb))
        pair, lane = 2 * (word >> 2 & 1), word >> 5 & 3
        size = k // blocks
        for i in range(blocks):
            fa = _scale_factors((quads_a[:, :, pair : pair + 2] >> u32(8 * ((word & 3) + i))) & u32(0xFF), scale_kind)
            fb = _scale_factors((quads_b[:, :, lane] >> u32(8 * ((word >> 3 & 3) + i))) & u32(0xFF), scale_kind)
            part = slice(i * size, (i + 1) * size)
            rows = np.concatenate([fa[:, :, 0], fa[:, :, 1]], axis=1)
            total = total + (a[:, :, part] @ bb[:, :, part].transpose(0, 2, 1)) * rows[:, :, None] * fb[:, None, :]
        _store(v, rd, fp.round_f32(_scatter(total, m)).view(u32), mask)

    return run


def qmma(b: Build) -> InstFn:
    """Byte products, with or without scales."""
    return scaled(b) if "SF" in b.mods else hmma(b)


def imma(b: Build) -> InstFn:
    """8- and 4-bit integer products, wrapping or (.SAT) clamped 32-bit sums."""
    b.only(*_SHAPES, "S8", "U8", "S4", "U4", "SAT", "SP")
    m, _, k = _shape(b)
    kinds = [x for x in b.inst.mods if x in ("S8", "U8", "S4", "U4")]
    bits = int(kinds[0][1])
    values = [o for o in b.s if isinstance(o, Reg)]
    sparse = _Sparse(b, values, kinds[0], bits)
    stored = k // 2 if sparse.on else k
    na, nb, nc = m * stored * bits // 1024, 8 * k * bits // 1024, m // 4
    ra, rb, rc = _rows(b, values[0], na), _rows(b, values[1], nb), _rows(b, values[2], nc)
    rd = [b.dst(i) for i in range(nc)]
    saturate = "SAT" in b.mods

    def run(v: View, mask: Arr | None) -> None:
        a = sparse.a(v, fragment_matrix(elements(_words(v, ra), bits, kinds[0]), m, stored, True))
        bb = fragment_matrix(elements(_words(v, rb), bits, kinds[-1]), 8, k, False)
        c = _accumulator(np.ascontiguousarray(_words(v, rc)).view(np.int32).astype(i64), m)
        d = _scatter(a @ bb.transpose(0, 2, 1) + c, m)
        if saturate:
            d = np.clip(d, -(1 << 31), (1 << 31) - 1)
        _store(v, rd, d.astype(u32), mask)

    return run


def bmma(b: Build) -> InstFn:
    """Counts of equal or of common bits."""
    b.only(*_SHAPES, "AND", "XOR", "POPC")
    m, _, k = _shape(b)
    values = [o for o in b.s if isinstance(o, Reg)]
    na, nb, nc = m * k // 1024, 8 * k // 1024, m // 4
    ra, rb, rc = _rows(b, values[0], na), _rows(b, values[1], nb), _rows(b, values[2], nc)
    rd = [b.dst(i) for i in range(nc)]
    xor = "XOR" in b.mods

    def run(v: View, mask: Arr | None) -> None:
        a = fragment_matrix(elements(_words(v, ra), 1, "U1"), m, k, True)
        bb = fragment_matrix(elements(_words(v, rb), 1, "U1"), 8, k, False)
        both = a @ bb.transpose(0, 2, 1)
        if xor:
            both = a.sum(axis=2)[:, :, None] + bb.sum(axis=2)[:, None, :] - 2 * both
        c = _accumulator(_words(v, rc).astype(i64), m)
        _store(v, rd, _scatter(both + c, m).astype(u32), mask)

    return run


def dmma(b: Build) -> InstFn:
    """Double products: sums in double in order of k, rounded after each multiply-add."""
    b.only(*_SHAPES, "RM", "RP", "RZ")
    mode = b.pick("RM", "RP", "RZ", default="RN")
    m, _, k = _shape(b)
    values = [o for o in b.s if isinstance(o, Reg)]
    na, nb, nc = m * k // 32, 8 * k // 32, m // 4
    ra, rb, rc = _rows(b, values[0], 2 * na), _rows(b, values[1], 2 * nb), _rows(b, values[2], 2 * nc)
    rd = [b.dst(i) for i in range(2 * nc)]

    def doubles(v: View, rows: list[int], n: int) -> Arr:
        return np.ascontiguousarray(_words(v, rows)).view(f64).reshape(-1, 32, n)

    def run(v: View, mask: Arr | None) -> None:
        a = fragment_matrix(doubles(v, ra, na)[..., None], m, k, True)
        bb = fragment_matrix(doubles(v, rb, nb)[..., None], 8, k, False)
        d = _accumulator(doubles(v, rc, nc), m)
        for i in range(k):
            x, y, z = np.broadcast_arrays(a[:, :, i, None], bb[:, None, :, i], d)
            d = fp.fma64(x, y, z, mode)
        _store(v, rd, np.ascontiguousarray(_scatter(d, m)).view(u32), mask)

    return run


OPS: Final[dict[str, Builder]] = {
    "HMMA": hmma, "QMMA": qmma, "OMMA": scaled, "IMMA": imma, "BMMA": bmma, "DMMA": dmma, **ops_tiles.OPS,
}  # fmt: skip
