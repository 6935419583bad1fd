"""Video instructions: see :mod:`stages.interpret.rows`.  Source: the PTX ISA manual.

Selectors are applied to the sources here (the parser keeps them as :class:`ir_format.ptx.Part`); `machine` passes
whole registers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ir_format.ptx import Neg, Operand, Part, PtxInst
from stages.interpret.rows import U64, Arr, Fn, bits_of, mask, row, signed, unsigned

_CMP: Final[dict[str, Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def selected(x: Arr, operand: Operand, is_signed: bool) -> Arr:
    """A source as int64: a byte, a half or the whole word."""
    if isinstance(operand, Neg):
        operand = operand.operand
    sel = operand.selector if isinstance(operand, Part) else ""
    bits = {"b": 8, "h": 16}.get(sel[:1], 32)
    x = x >> U64(int(sel[1]) * bits) if sel else x
    return signed(x, bits) if is_signed else unsigned(x, bits).astype(np.int64)


def _saturated(r: Arr, is_signed: bool, bits: int) -> Arr:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return np.clip(r, low, high)


def _core(inst: PtxInst) -> Any:
    op = inst.op.rstrip("24")
    if op == "vset":
        fn = _CMP[next(m for m in inst.mods if m in _CMP)]
        return lambda a, b: fn(a, b).astype(np.int64)
    wrap = inst.has("wrap")

    def amount(b: Arr) -> Arr:
        n = b & np.int64(0xFFFFFFFF)
        return n & np.int64(31) if wrap else np.minimum(n, np.int64(32))

    return {
        "vadd": lambda a, b: a + b,
        "vsub": lambda a, b: a - b,
        "vabsdiff": lambda a, b: np.abs(a - b),
        "vmin": np.minimum,
        "vmax": np.maximum,
        "vshl": lambda a, b: a << amount(b),
        "vshr": lambda a, b: a >> amount(b),
        "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> np.int64(1),  # negative sums are not rounded up (documented)
    }[op]


def _wide(r: Arr) -> Arr:
    """The input of saturation: the intermediate result has 34 bits (documented), so a left shift loses the bits beyond.
    Without saturation the manual leaves those bits open; here a second operation sees them (measured: ptxas).
    """
    return np.asarray(np.right_shift(np.left_shift(r, 30), 30))


@row("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
def _scalar(inst: PtxInst) -> Fn:
    dest = inst.types[0] if inst.op != "vset" else "u32"
    sources = inst.types[-2:]
    core = _core(inst)
    sat = inst.has("sat")
    into = inst.operands[0]
    second = next((m for m in inst.mods if m in ("add", "min", "max")), None)
    d_signed = dest[0] == "s"

    def combine(r: Arr, c: Arr) -> Arr:
        """The second operation. The intermediate and c have the sign of the destination (documented): compared
        without a sign, a negative intermediate is greater than every c."""
        w = signed(c, 32) if d_signed else unsigned(c, 32).astype(np.int64)
        if second == "add":
            return np.asarray(r + w)
        a, b = (r, w) if d_signed else (np.asarray(r).view(U64), w.view(U64))
        return np.asarray(np.minimum(a, b) if second == "min" else np.maximum(a, b)).view(np.int64)

    def apply(a: Arr, b: Arr, *c: Arr) -> Arr:
        x = selected(a, inst.operands[1], sources[0][0] == "s")
        y = selected(b, inst.operands[2], sources[1][0] == "s")
        r = np.broadcast_arrays(core(x, y), x)[0]
        if sat:
            r = _wide(r)
        if isinstance(into, Part):
            bits = 8 if into.selector[0] == "b" else 16
            if sat:
                r = _saturated(r, d_signed, bits)
            at = U64(int(into.selector[1]) * bits)
            return unsigned((c[0] & ~(mask(bits) << at)) | (bits_of(r, bits) << at), 32)
        if sat:
            r = _saturated(r, d_signed, 32)
        return bits_of(combine(r, c[0]) if second else r, 32)

    return apply


@row("vmad")
def _vmad(inst: PtxInst) -> Fn:
    dest, ta, tb = inst.types
    shift = next((int(m[3:]) for m in inst.mods if m.startswith("shr")), 0)
    product_negative = isinstance(inst.operands[1], Neg) != isinstance(inst.operands[2], Neg)
    c_negative = isinstance(inst.operands[3], Neg)
    # Documented: the result is signed if a source is or either summand is negated. For c the manual contradicts itself:
    # its text says that c is like the product, its code sign-extends c whenever the result is signed, thus also in
    # (u32*u32) - u32. The interpreter follows the code, as everywhere.
    is_signed = ta[0] == "s" or tb[0] == "s" or product_negative or c_negative

    def apply(a: Arr, b: Arr, c: Arr) -> Arr:
        x = selected(a, inst.operands[1], ta[0] == "s").astype(object)
        y = selected(b, inst.operands[2], tb[0] == "s").astype(object)
        z = selected(c, inst.operands[3], is_signed).astype(object)
        r = (-(x * y) if product_negative else x * y) + (-z if c_negative else z)
        if inst.has("po"):
            r = r + 1
        r = np.array([v >> shift for v in np.ravel(r)], object)
        if inst.has("sat"):
            low, high = (-(1 << 31), (1 << 31) - 1) if is_signed else (0, (1 << 32) - 1)
            r = np.array([min(max(v, low), high) for v in r], object)
        return np.array([v & 0xFFFFFFFF for v in r], U64)

    return apply


@row(
    "vadd2",
    "vsub2",
    "vavrg2",
    "vabsdiff2",
    "vmin2",
    "vmax2",
    "vset2",
    "vadd4",
    "vsub4",
    "vavrg4",
    "vabsdiff4",
    "vmin4",
    "vmax4",
    "vset4",
)
def _simd(inst: PtxInst) -> Fn:
    count = int(inst.op[-1])
    bits = 32 // count
    letter = "h" if count == 2 else "b"
    is_set = inst.op.startswith("vset")
    dest = "u32" if is_set else inst.types[0]
    sources = inst.types[-2:]
    core = _core(inst)
    sat, accumulate = inst.has("sat"), inst.has("add")
    lanes = (
        [int(x) for x in inst.operands[0].selector[1:][::-1]]
        if isinstance(inst.operands[0], Part)
        else list(range(count))
    )

    def elements(a: Arr, b: Arr, operand: Operand, is_signed: bool) -> list[Arr]:
        """The lanes of a source: selectors reach over both sources (a low, b high)."""
        both = (unsigned(b, 32) << U64(32)) | unsigned(a, 32)
        default = range(count) if operand is inst.operands[1] else range(count, 2 * count)
        chosen = [int(x) for x in operand.selector[1:][::-1]] if isinstance(operand, Part) else list(default)
        out = []
        for k in chosen:
            v = both >> U64(k * bits)
            out.append(signed(v, bits) if is_signed else unsigned(v, bits).astype(np.int64))
        return out

    def apply(a: Arr, b: Arr, c: Arr) -> Arr:
        xs = elements(a, b, inst.operands[1], sources[0][0] == "s")
        ys = elements(a, b, inst.operands[2], sources[1][0] == "s")
        word: Any = unsigned(c, 32)
        total: Any = signed(c, 32)
        for k in range(count):
            r = core(xs[k], ys[k])
            if sat:
                r = _saturated(r, dest[0] == "s", bits)
            if accumulate:
                if k in lanes:
                    total = total + r
                continue
            if k in lanes:
                at = U64(k * bits)
                word = (word & ~(mask(bits) << at)) | (bits_of(r, bits) << at)
        return bits_of(total, 32) if accumulate else unsigned(word, 32)

    assert letter in "hb"
    return apply
