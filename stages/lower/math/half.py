"""Half precision and bfloat16, scalar and packed.

A scalar is the low half of a register. Its operands are read as ``H0_H0`` (both lanes read the low half), so the upper
half of a result is a copy without meaning. Additions are HADD2, products HMUL2, both with ``.BF16_V2`` for bfloat16
(sm_90+; sm_80 has only HFMA2 for that type: measured).
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format import ptx
from ir_format.model import NEG, NOT_PT, PT, RZ, Imm, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.math.common import (
    ROUND,
    Val,
    absolute,
    combine_pred,
    comparison,
    contractible,
    ftz,
    negate,
    pred_dsts,
    rounding,
    signed,
)

HALF_TYPES: Final = ("f16", "bf16", "f16x2", "bf16x2")
LOW: Final = "H0_H0"
RZ_LOW: Final = RZ._replace(mod=LOW)
NEG_RZ_LOW: Final = RZ_LOW._replace(flags=NEG)


def brain(t: str) -> str:
    """The modifier of bfloat16."""
    return ".BF16_V2" if t.startswith("bf16") else ""


def half_src(b: Builder, x: ptx.Operand, t: str) -> Val:
    """A source operand: a scalar or an immediate in both lanes."""
    v = b.src(x, t)
    if t.endswith("x2"):
        return v
    return spread(v)


def spread(v: Val) -> Val:
    """The low half of a value in both lanes."""
    if type(v) is Imm:
        return Imm("I", (v.value & 0xFFFF) * 0x10001)
    return v._replace(mod=LOW)


def mods_of(inst: PtxInst, t: str) -> str:
    """Type, ``.FTZ``, ``.OOB``, ``.SAT``, ``.RELU`` in print order."""
    m = inst.mods
    return brain(t) + ftz(inst) + "".join(f".{k.upper()}" for k in ("oob", "sat", "relu") if k in m)


def add(b: Builder, inst: PtxInst) -> None:
    """add, sub: HADD2, the subtrahend negated."""
    t = inst.types[0]
    d, x, y = inst.operands
    v = half_src(b, y, t)
    other = negate(v, _wide(t)) if inst.op == "sub" else v
    b.emit("HADD2" + mods_of(inst, t), b.dst(d, t), (half_src(b, x, t), other), attrs=contractible(b, inst))


def _wide(t: str) -> str:
    """The packed type, whose sign bits an immediate in both lanes has."""
    return t if t.endswith("x2") else t + "x2"


def mul(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d, x, y = inst.operands
    factors = (half_src(b, x, t), half_src(b, y, t))
    b.emit("HMUL2" + mods_of(inst, t), b.dst(d, t), factors, attrs=contractible(b, inst))


def fma(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d, x, y, z = inst.operands
    if rounding(inst) != "rn":
        _directed_fma(b, inst, t)
        return
    b.emit("HFMA2" + mods_of(inst, t), b.dst(d, t), (half_src(b, x, t), half_src(b, y, t), half_src(b, z, t)))


def _directed_fma(b: Builder, inst: PtxInst, t: str) -> None:
    """fma of bfloat16 with a directed rounding, which ptxas takes, and then computes scalars as if they were f16 and
    pairs to nearest (measured). Here f32 is rounded in that direction, then its upper half again: the same as once."""
    d, *xs = inst.operands
    words = [b.in_reg(b.src(x, t)) for x in xs]
    if not t.endswith("x2"):
        b.emit("PRMT", b.dst(d, t), (_directed_lane(b, inst, words, 0), Imm("I", 0x7732), RZ))
        return
    low, high = (_directed_lane(b, inst, words, lane) for lane in (0, 1))
    b.emit("PRMT", b.dst(d, t), (low, Imm("I", 0x7632), high))


def _directed_lane(b: Builder, inst: PtxInst, words: list[Reg], lane: int) -> Reg:
    """The result of a lane, in the upper half of a register."""
    wide = [b.r() for _ in words]
    for x, word in zip(wide, words, strict=True):
        b.emit("PRMT", x, (word, Imm("I", 0x3244 if lane else 0x1044), RZ))
    mode = rounding(inst)
    got = b.r()
    b.emit(f"FFMA{ROUND[mode]}", got, wide)
    if inst.has("relu"):
        clipped = b.r()
        b.emit("FMNMX.NAN", clipped, (got, RZ, NOT_PT))
        got = clipped
    if mode != "rz":  # what is cut off moves a number away from zero: below it for .rm, above it for .rp, NaN stays
        away, more, moved = b.p(), b.r(), b.r()
        bound, side = (0x80000000, "GE") if mode == "rm" else (0x7F800000, "LE")
        b.emit(f"ISETP.{side}.U32.AND", (away, PT), (got, Imm("I", bound), PT))
        b.emit("SEL", more, (RZ, Imm("I", 0xFFFF), b.not_(away)))
        b.emit("IADD3", moved, (got, more, RZ))
        got = moved
    if inst.has("oob"):  # a factor of all ones marks an element out of range: the result is 0
        for factor in wide[:2]:
            outside, kept = b.p(), b.r()
            b.emit("ISETP.EQ.U32.AND", (outside, PT), (factor, Imm("I", 0xFFFF0000), PT))
            b.emit("SEL", kept, (RZ, got, outside))
            got = kept
    return got


def plus_zero(b: Builder, d: Reg, v: Val, t: str, mods: str = "") -> None:
    """d = v with NaNs made canonical: v + -0, as HADD2 or (bfloat16) as the addend of HFMA2 with a product of -0."""
    if brain(t):
        b.emit("HFMA2.BF16_V2" + mods, d, (NEG_RZ_LOW, RZ_LOW, v))
    else:
        b.emit("HADD2" + mods, d, (v, NEG_RZ_LOW))


def neg(b: Builder, inst: PtxInst) -> None:
    """neg, abs."""
    t = inst.types[0]
    d, x = inst.operands
    v = b.in_reg(b.src(x, t))
    if not t.endswith("x2"):
        v = v._replace(mod=LOW)
    plus_zero(b, b.dst(d, t), absolute(v, t) if inst.op == "abs" else negate(v, t), t, ftz(inst))


def minmax(b: Builder, inst: PtxInst) -> None:
    """min and max, with .NaN, .xorsign and .abs."""
    t = inst.types[0]
    d, x, y = inst.operands
    b.need(inst, "half-min-max")
    v = [half_src(b, x, t), half_src(b, y, t)]
    if "xorsign" in inst.mods:
        v = [signed(b, k, _wide(t)) for k in v]
    if "abs" in inst.mods:
        v = [absolute(k, _wide(t)) for k in v]
    mods = (
        brain(t) + ftz(inst) + (".NAN" if "NaN" in inst.mods else "") + (".XORSIGN" if "xorsign" in inst.mods else "")
    )
    b.emit("HMNMX2" + mods, b.dst(d, t), (*v, PT if inst.op == "min" else NOT_PT))


def setp(b: Builder, inst: PtxInst) -> None:
    """setp: one predicate for a scalar, one for each half of a pair."""
    t = inst.types[0]
    d, x, y = inst.operands[:3]
    cmp, bop = comparison(inst)
    b.emit(
        f"HSETP2{brain(t)}.{cmp}{ftz(inst)}.{bop}",
        pred_dsts(b, d),
        (half_src(b, x, t), half_src(b, y, t), combine_pred(b, inst, 3)),
    )


def set_half(b: Builder, inst: PtxInst) -> None:
    """set.dtype.htype: 1.0 in the half type, all ones in an integer (of 16 bits, extended to 32 from a scalar
    comparison)."""
    dt, t = inst.types
    d, x, y = inst.operands[:3]
    cmp, bop = comparison(inst)
    as_float = ".BF" if dt.startswith(("f16", "bf16")) else ""
    out = b.dst(d, dt)
    widen = dt in ("u32", "s32", "b32") and not t.endswith("x2")
    r = b.r() if widen else out
    b.emit(
        f"HSET2{brain(t)}{as_float}.{cmp}{ftz(inst)}.{bop}",
        r,
        (half_src(b, x, t), half_src(b, y, t), combine_pred(b, inst, 3)),
    )
    if widen:
        b.emit("PRMT", out, (r, Imm("I", 0x9910), RZ))


def mufu_half(fn: str) -> Rule:
    """ex2, tanh: MUFU works on one half; a pair needs two and a pack."""

    def rule(b: Builder, inst: PtxInst) -> None:
        t = inst.types[0]
        d, x = inst.operands
        op = f"MUFU.{fn}.{'BF16' if t.startswith('bf16') else 'F16'}"
        v = b.in_reg(b.src(x, t))
        if not t.endswith("x2"):
            b.emit(op, b.dst(d, t), (v,))
            return
        low, high = b.r(), b.r()
        b.emit(op, low, (v,))
        b.emit(op, high, (v._replace(mod="H1"),))
        b.emit("PRMT", b.dst(d, t), (low, Imm("I", 0x5410), high))

    return rule


def mixed(op: Callable[[PtxInst], str]) -> Rule:
    """add, sub and fma whose f16 or bf16 factors are widened exactly and whose result is f32 (sm_100+)."""

    def rule(b: Builder, inst: PtxInst) -> None:
        b.need(inst, "half-mixed-sums")
        t = inst.types[1]
        d, *xs = inst.operands
        wide = len(xs) - 1  # the last operand is the f32 one
        srcs = [b.in_reg(b.src(x, t)) if i < wide else b.src(x, "f32") for i, x in enumerate(xs)]
        if inst.op == "sub":
            srcs[1] = negate(srcs[1], "f32")
        mods = (".BF16" if t == "bf16" else "") + ROUND[rounding(inst)] + (".SAT" if "sat" in inst.mods else "")
        b.emit(op(inst) + mods, b.dst(d), srcs)

    return rule


def mixed_pairs(op: str) -> Rule:
    """add, sub and fma whose first operand is a pair of f16 or bf16, the others pairs of f32 (sm_107)."""

    def rule(b: Builder, inst: PtxInst) -> None:
        b.need(inst, "half-mixed-pairs")
        d, first, *xs = inst.operands
        wide = [b.in_reg(b.src(x, "f32x2"), 2)._replace(mod="F32x2.HI_LO") for x in xs]
        if inst.op == "sub":
            wide[0] = wide[0]._replace(flags=wide[0].flags ^ NEG)
        types = ".".join(t.upper().replace("X2", "x2") for t in inst.types)
        b.emit(f"{op}.{types}{ROUND[rounding(inst)]}", b.dst(d, "f32x2"), (b.in_reg(b.src(first, "f16x2")), *wide))

    return rule


#: Four numbers of a narrow format -> the format's name and which parts of the register they are.
_FOUR = {
    **{t: (t[:-2].upper() + "x4", "B3210") for t in ("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4")},
    "ue8m0x4": ("E8x4", "B3210"), "e2m1x4": ("E2M1x4", "N3210"), "e2m1p4x4": ("E2M1x4", "N6420"),
}  # fmt: skip


def four(op: str, narrow: int) -> Rule:
    """add, sub, mul and fma of four narrow numbers: the first ``narrow`` operands have types of their own, the last
    that of the result (sm_100a, sm_103a)."""

    def rule(b: Builder, inst: PtxInst) -> None:
        b.need(inst, "four-narrow-sums")
        d, *xs = inst.operands
        types = [*inst.types[1 : narrow + 1], *[inst.types[0]] * (len(xs) - narrow)]
        srcs = []
        for x, t in zip(xs, types, strict=True):
            srcs.append(b.in_reg(b.src(x, t))._replace(mod=_FOUR[t][1]))
        if inst.op == "sub":
            srcs[1] = srcs[1]._replace(flags=srcs[1].flags ^ NEG)
        names = ".".join(_FOUR[t][0] for t in inst.types)
        b.emit(f"{op}.{names}{'.SATFINITE' if 'satfinite' in inst.mods else ''}", b.dst(d, inst.types[0]), srcs)

    return rule


_SUMS_OF_FOUR: dict[str, Rule] = {}
for _d in ("e4m3x4", "e5m2x4"):
    _SUMS_OF_FOUR[f"add.{_d}"] = _SUMS_OF_FOUR[f"sub.{_d}"] = four("QADD4", 1)
    _SUMS_OF_FOUR[f"mul.{_d}"] = four("QMUL4", 2)
    _SUMS_OF_FOUR[f"fma.{_d}"] = four("QFMA4", 2)
_MIXED_PAIRS: dict[str, Rule] = {
    **{f"{op}.f32x2.{t}.f32x2": mixed_pairs("FHADD2") for op in ("add", "sub") for t in ("f16x2", "bf16x2")},
    **{f"fma.f32x2.{t}.f32x2.f32x2": mixed_pairs("FHFMA2") for t in ("f16x2", "bf16x2")},
}


_MIXED = {
    "add": mixed(lambda _: "FHADD"), "sub": mixed(lambda _: "FHADD"), "fma": mixed(lambda _: "FHFMA"),
}  # fmt: skip

RULES: dict[str, Rule] = {
    **{
        f"{op}.{t}": rule
        for t in HALF_TYPES
        for op, rule in {
            "add": add, "sub": add, "mul": mul, "fma": fma, "neg": neg, "abs": neg, "min": minmax, "max": minmax,
            "setp": setp,
            "ex2": mufu_half("EX2"), "tanh": mufu_half("TANH"),
        }.items()
    },
    **{f"set.{d}.{t}": set_half for t in ("f16", "bf16") for d in (t, "u16", "s16", "u32", "s32")},
    **{f"set.{d}.{t}": set_half for t in ("f16x2", "bf16x2") for d in (t, "u32", "s32")},
    **{f"{op}.f32.{t}": rule for op, rule in _MIXED.items() for t in ("f16", "bf16")},
    **_MIXED_PAIRS,
    **_SUMS_OF_FOUR,
}  # fmt: skip
