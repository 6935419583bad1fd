"""cvt from or to a floating-point type.

The instructions by SM (measured with one-instruction kernels): I2F, F2I, F2F and FRND exist on all SMs and use the slow
pipe. I2FP (sm_86+) converts 32-bit integers to f32, to nearest or towards zero. F2FP (sm_80+) converts f32 to f16,
bf16, tf32 (sm_90+), fp8 (sm_89+) and narrower formats (sm_100+), to nearest or towards zero. HADD2.F32 widens f16, a
shift widens bf16.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format import ptx
from ir_format.model import PT, RZ, ZERO, Imm, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule, is_signed
from stages.lower.math.common import NEG_RZ, ROUND, Val, absolute, float_imm, rounding, store_int
from stages.lower.math.half import LOW, NEG_RZ_LOW, plus_zero

ONE: Final = float_imm(0x3F800000)
INTS: Final = tuple(f"{k}{n}" for k in "us" for n in (8, 16, 32, 64))
# PTX rounding to an integral value -> SASS suffix.
INTEGRAL: Final = {"rni": "", "rzi": ".TRUNC", "rmi": ".FLOOR", "rpi": ".CEIL"}
# Part of a type in the name of I2F, F2I, F2F: s32 and f32 are not printed by I2F and F2I.
_PART: Final = {"s32": "", "f32": "", **{t: f".{t.upper()}" for t in (*INTS, "f16", "bf16", "f64") if t != "s32"}}
_NAME: Final = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64"}
# Biased f64 patterns under which the f32 result (rounded as if exponents had no bound) is subnormal.
_TINY_NEAREST: Final = 0x380FFFFFF0000000  # 2**-126 - 2**-151: the tie goes up
_TINY_TOWARDS: Final = 0x3810000000000000  # 2**-126
_TINY_AWAY: Final = 0x380FFFFFE0000001  # just above 2**-126 - 2**-150


def integral(inst: PtxInst) -> str | None:
    """The SASS suffix of .rni, .rzi, .rmi, .rpi; None if none is written."""
    return next((INTEGRAL[m] for m in inst.mods if m in INTEGRAL), None)


def saturated(b: Builder, d: Reg, x: Reg, t: str, f: str = "") -> None:
    """d = x clamped to [0, 1], NaN to 0."""
    if t == "f64":
        from stages.lower.math.f64 import saturate

        saturate(b, d, x)
    elif t == "f32":
        b.emit(f"FADD{f}.SAT", d, (RZ, x))
    elif t == "f16":
        b.emit("HADD2.SAT", d, (x._replace(mod=LOW), NEG_RZ_LOW))
    else:
        b.emit("HFMA2.BF16_V2.SAT", d, (NEG_RZ_LOW, RZ._replace(mod=LOW), x._replace(mod=LOW)))


def with_sat(convert: Callable[[Builder, PtxInst, Reg, Val], None]) -> Rule:
    """A conversion to a float type, then .sat. ``convert(b, inst, dst, src)``."""

    def rule(b: Builder, inst: PtxInst) -> None:
        dt, st = inst.types
        dst = b.dst(inst.operands[0], dt)
        if dst.num == ZERO:
            dst = b.r(b.words(dt))
        src = b.src(inst.operands[1], st)
        if "sat" not in inst.mods:
            convert(b, inst, dst, src)
            return
        t = b.r(dst.width)
        convert(b, inst, t, src)
        saturated(b, dst, t, dt)

    return rule


# --------------------------------------------------------------------------- integers


def int_to_float(b: Builder, inst: PtxInst, d: Reg, x: Val) -> None:
    dt, st = inst.types
    if dt == "bf16":
        b.need(inst, "bf16-conversions-all")
    rnd = rounding(inst)
    words = 2 if b.bits(st) == 64 else 1
    if dt == "f32" and b.has("int-to-float-alu") and rnd in ("rn", "rz") and st in ("u8", "u16", "u32", "s32"):
        b.emit(f"I2FP.F32.{'S32' if st == 's32' else 'U32'}{ROUND[rnd]}", d, (b.in_reg(b.ext(x, st)),))
        return
    b.emit(f"I2F{_PART[dt]}{_PART[st]}{ROUND[rnd]}", d, (b.in_reg(x, words),))


def float_to_int(b: Builder, inst: PtxInst) -> None:
    """F2I saturates and, with .NTZ, turns a NaN into zero. .NTZ is not printed if one of the types has 64 bits
    (measured)."""
    dt, st = inst.types
    if st == "bf16":
        b.need(inst, "bf16-conversions-all")
    wide = b.bits(dt) == 64
    rnd = integral(inst)
    if rnd is None:
        raise b.unsupported(inst, "needs an integer rounding modifier")
    f = ".FTZ" if "ftz" in inst.mods and not wide else ""
    ntz = "" if wide or st == "f64" else ".NTZ"
    x = b.in_reg(b.src(inst.operands[1], st), b.words(st))
    if (
        wide and "ftz" in inst.mods and (rnd == ".CEIL" or (rnd == ".FLOOR" and is_signed(dt)))
    ):  # else a subnormal becomes zero by itself
        t = b.r()
        b.emit("FADD.FTZ", t, (x, NEG_RZ))
        x = t
    r = b.r(2 if wide else 1)
    b.emit(f"F2I{f}{_PART[dt]}{_PART[st]}{rnd}{ntz}", r, (x,))
    if wide:
        b.copy(b.dst(inst.operands[0], dt), r)
    else:
        # F2I extends the result of a number to 32 bits, but not that of a NaN in double precision (measured), so it is
        # extended there.
        store_int(b, inst.operands[0], dt, b.in_reg(b.ext(r, dt)) if st == "f64" else r)


# --------------------------------------------------------------------------- between float types


def f2fp(b: Builder, d: Reg, dt: str, st: str, pack: str, srcs: tuple[Val, ...], mods: str = "", rnd: str = "") -> None:
    """F2FP as the SM spells it: before sm_89 the pair F16.F32 and the source F32 are not printed."""
    types = f".{dt}.{st}"
    if not b.has("pack-names-types"):
        types = {".F16.F32": "", ".BF16.F32": ".BF16"}[types]
    b.emit(f"F2FP{mods}{types}.{pack}{rnd}", d, srcs)


def _clamp_mods(inst: PtxInst) -> str:
    return (".SATFINITE" if "satfinite" in inst.mods else "") + (".RELU" if "relu" in inst.mods else "")


def narrow_f32(b: Builder, inst: PtxInst, d: Reg, x: Val) -> None:
    """f32 to f16 or bf16."""
    dt = inst.types[0]
    rnd = rounding(inst)
    clamp = _clamp_mods(inst)
    if dt == "bf16" or "relu" in inst.mods:
        b.need(inst, "bf16-conversions")
    # a subnormal f32 rounds to zero in f16 unless the rounding is directed
    f = ".FTZ" if "ftz" in inst.mods and (dt == "bf16" or rnd in ("rm", "rp")) else ""
    if b.has("pack-halves") and rnd in ("rn", "rz") and not f:
        srcs = (RZ, b.in_reg(x) if "pzo" in inst.mods else x)
        f2fp(b, d, _NAME[dt], "F32", "PACK_AB", srcs, clamp, _narrow_rounding(b, inst))
    elif clamp and (dt == "bf16" or "relu" in inst.mods):
        raise b.unsupported(inst)
    elif clamp:
        _narrow_finite(b, d, x, f"F2F{f}.F16.F32{ROUND[rnd]}")
    else:
        b.emit(f"F2F{f}.{_NAME[dt]}.F32{ROUND[rnd]}", d, (b.in_reg(x),))


def _narrow_finite(b: Builder, d: Reg, x: Val, op: str) -> None:
    """f32 to f16 with .satfinite on an SM without a saturating conversion. An infinity becomes the largest finite
    number, which is one unit less; a NaN stays.

    ptxas uses sm_80's packed conversion here, which sm_75 does not have (nvdisasm refuses the word).
    """
    infinite, r, t = b.p(), b.r(), b.r()
    b.emit(op, r, (b.in_reg(x),))
    b.emit("LOP3.LUT", t, (r, Imm("I", 0x7FFF), RZ, Imm("I", 0xC0)))
    b.emit("ISETP.EQ.U32.AND", (infinite, PT), (t, Imm("I", 0x7C00), PT))
    b.emit("IADD3", r, (r, Imm("I", 0xFFFFFFFF), RZ), infinite)
    b.copy(d, r)


def narrow(b: Builder, inst: PtxInst, d: Reg, x: Val) -> None:
    """f64 or the other half type to f16, bf16 or f32."""
    dt, st = inst.types
    if "bf16" in (dt, st):
        b.need(inst, "bf16-conversions-all")
    b.emit(f"F2F.{_NAME[dt]}.{_NAME[st]}{ROUND[rounding(inst)]}", d, (b.in_reg(x, b.words(st)),))


def f64_to_f32(b: Builder, inst: PtxInst, d: Reg, x: Val) -> None:
    """F2F. With .ftz the result is zero if it is subnormal when rounded with unbounded exponents (measured)."""
    v = b.in_reg(x, 2)
    rnd = rounding(inst)
    if "ftz" not in inst.mods:
        narrow(b, inst, d, v)
        return
    p, t = b.p(), b.r()
    b.emit(f"F2F.F32.F64{ROUND[rnd]}", t, (v,))
    bound: Reg | Imm = Imm("I", _TINY_NEAREST if rnd == "rn" else _TINY_TOWARDS)
    if rnd in ("rm", "rp"):
        negative = b.p()
        b.emit("ISETP.LT.AND", (negative, PT), (b.hi(v), RZ, PT))
        bound = b.r(2)
        away, towards = Imm("I", _TINY_AWAY), Imm("I", _TINY_TOWARDS)
        b.select(bound, *((away, towards) if rnd == "rm" else (towards, away)), negative)
    else:
        bound = b.in_reg(bound, 2)
    b.emit("DSETP.LT.AND", (p, PT), (absolute(v, "f64"), bound, PT))
    b.emit("LOP3.LUT", t, (t, Imm("I", 0x80000000), RZ, Imm("I", 0xC0)), p)
    b.copy(d, t)


def half_to_f32(b: Builder, inst: PtxInst, d: Reg, x: Val) -> None:
    """Exact; .ftz makes no difference for f16, whose subnormals are normal in f32."""
    if inst.types[1] == "f16":
        v = b.in_reg(x)._replace(mod=LOW)
        b.emit("HADD2.F32", d, (NEG_RZ, v) if b.has("half-pair-signed-zero") else (v, NEG_RZ_LOW))
        return
    b.need(inst, "bf16-conversions")
    if "ftz" not in inst.mods:
        b.emit("SHF.L.U32", d, (b.in_reg(x), Imm("I", 16), RZ))
        return
    t = b.r()
    b.emit("SHF.L.U32", t, (b.in_reg(x), Imm("I", 16), RZ))
    b.emit("FADD.FTZ", d, (t, NEG_RZ))


def to_f64(b: Builder, inst: PtxInst, d: Reg, x: Val) -> None:
    """Exact; .ftz flushes a subnormal f32 first."""
    st = inst.types[1]
    if st == "bf16":
        b.need(inst, "bf16-conversions-all")
    v = b.in_reg(x)
    if "ftz" in inst.mods and st == "f32":
        t = b.r()
        b.emit("FADD.FTZ", t, (v, NEG_RZ))
        v = t
    b.emit(f"F2F.F64.{_NAME[st]}", d, (v,))


def same_type(b: Builder, inst: PtxInst) -> None:
    """cvt between equal types: rounding to an integral value, .ftz, .sat, or a move."""
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    if d.num == ZERO:
        return
    x = b.in_reg(b.src(inst.operands[1], t), b.words(t))
    f = ".FTZ" if "ftz" in inst.mods else ""
    sat = "sat" in inst.mods
    rnd = integral(inst)
    if t == "bf16":
        b.need(inst, "bf16-conversions-all")
    if rnd is not None:
        r = b.r(d.width)
        b.emit(f"FRND{f}{'' if t == 'f32' else '.' + _NAME[t]}{rnd}", r if sat else d, (x,))
        if not sat:
            return
        x = r
    if sat:
        saturated(b, d, x, t, f)
    elif t in ("f16", "bf16"):
        plus_zero(b, d, x._replace(mod=LOW), t)
    elif f:
        b.emit("FADD.FTZ", d, (x, NEG_RZ))
    else:
        b.copy(d, x)


# --------------------------------------------------------------------------- tf32, packed and narrow formats


def to_tf32(b: Builder, inst: PtxInst) -> None:
    """f32 to tf32: .rna adds half a unit to the magnitude of a finite number and drops 13 bits; the other roundings use
    F2FP."""
    d = b.dst(inst.operands[0], "b32")
    x = b.src(inst.operands[1], "f32")
    if "rna" not in inst.mods:
        b.need(inst, "tf32-saturates" if "satfinite" in inst.mods else "tf32-roundings")
        b.emit(f"F2FP{_clamp_mods(inst)}.TF32.F32.PACK_B{_narrow_rounding(b, inst)}", d, (b.in_reg(x),))
        return
    b.need(inst, "tf32-conversions")
    finite, t, r = b.p(), b.r(), b.r()
    inf = Imm("I", 0x7F800000)
    b.copy(t, x)
    b.emit("FSETP.LT.AND", (finite, PT), (absolute(t, "f32"), inf, PT))
    b.emit("IADD3", t, (t, Imm("I", 0x1000), RZ), finite)
    b.emit("LOP3.LUT", r, (t, Imm("I", 0xFFFFE000), RZ, Imm("I", 0xC0)))
    if (
        "satfinite" in inst.mods
    ):  # an infinity becomes the largest finite number; a NaN, one unit less, stays a NaN or becomes that number
        big = b.p()
        b.emit("FSETP.GEU.AND", (big, PT), (absolute(r, "f32"), inf, PT))
        b.emit("IADD3", r, (r, Imm("I", -0x2000 & 0xFFFFFFFF), RZ), big)
    b.copy(d, r)


# Packed destinations: PTX type -> (SASS name, feature).
_PACKED: Final = {
    "f16x2": ("F16", "bf16-conversions"), "bf16x2": ("BF16", "bf16-conversions"),
    "e4m3x2": ("E4M3", "eight-bit-float-conversions"), "e5m2x2": ("E5M2", "eight-bit-float-conversions"),
    "e2m3x2": ("E2M3", "narrow-float-conversions"), "e3m2x2": ("E3M2", "narrow-float-conversions"),
    "e2m1x2": ("E2M1", "narrow-float-conversions"), "ue8m0x2": ("E8", "narrow-float-conversions"),
    "s2f6x2": ("S2_6", "narrow-float-conversions"), "ue5m3x2": ("UE5M3", "narrow-float-roundings"),
}  # fmt: skip
_NARROW_BITS: Final = {
    "e4m3x2": 16, "e5m2x2": 16, "e2m3x2": 16, "e3m2x2": 16, "e2m1x2": 8, "ue8m0x2": 16, "s2f6x2": 16, "ue5m3x2": 16,
}  # fmt: skip
_SCALED: Final = "scaled::n2::ue8m0"
_DIVIDED: Final = "scaled::n1::ue8m0"
_ONES: Final = Imm("I", 0x7F7F)  # two exponents of ue8m0, both of 1.0


def pack_f32(b: Builder, inst: PtxInst) -> None:
    """Two f32 to a pair: the first source is the upper half. With .rs a third source holds random bits."""
    dt = inst.types[0]
    name, feature = _PACKED[dt]
    stochastic = "rs" in inst.mods
    b.need(inst, "stochastic-rounding" if stochastic else feature)
    srcs: list[Val] = [b.in_reg(b.src(inst.operands[1], "f32")), b.src(inst.operands[2], "f32")]
    rnd = ".RS" if stochastic else _narrow_rounding(b, inst)
    if stochastic:
        srcs.append(b.src(inst.operands[3], "b32"))
    d = b.dst(inst.operands[0], dt)
    if dt in _NARROW_BITS:
        below = _below(b, inst, 3)
        srcs[1] = b.in_reg(srcs[1]) if "pzo" in inst.mods else srcs[1]
        b.emit(f"F2FP{_clamp_mods(inst)}.{name}.F32.PACK_AB_MERGE_C{rnd}", d, (*srcs, below))
    else:
        srcs[1] = b.in_reg(srcs[1]) if "pzo" in inst.mods else srcs[1]
        f2fp(b, d, name, "F32", "PACK_AB", tuple(srcs), _clamp_mods(inst), rnd)


def _scale(b: Builder, inst: PtxInst, index: int) -> Reg:
    """The two scales of a conversion; ones where it has none."""
    return b.in_reg(b.src(inst.operands[index], "b16")) if _SCALED in inst.mods else b.in_reg(_ONES)


def _scale_above(b: Builder, inst: PtxInst, index: int) -> Val:
    """The same in the upper half, where conversions to fixed-point numbers want it (measured)."""
    if _SCALED not in inst.mods:
        return Imm("I", _ONES.value << 16)
    d = b.r()
    b.emit("SHF.L.U32", d, (_scale(b, inst, index), Imm("I", 16), RZ))
    return d


def _below(b: Builder, inst: PtxInst, index: int) -> Val:
    """The third source of a conversion to a pair: nothing, or the scale in its top byte or half."""
    if inst.types[0] == "s2f6x2":
        return _scale_above(b, inst, index)
    if _DIVIDED not in inst.mods:
        return RZ
    d = b.r()
    b.emit("SHF.L.U32", d, (b.in_reg(b.src(inst.operands[index], "b8")), Imm("I", 24), RZ))
    return d


def _narrow_rounding(b: Builder, inst: PtxInst) -> str:
    """Division by a scale, rounding, no negative zeros, as modifiers."""
    names = (".SCALE_BY_C" if _DIVIDED in inst.mods else "", ".PZO" if "pzo" in inst.mods else "")
    narrow = inst.types[0] in _NARROW_BITS and inst.types[0] != "ue8m0x2"
    if any(names) or (narrow and rounding(inst) != "rn"):
        b.need(inst, "narrow-float-roundings")
    return names[0] + ROUND[rounding(inst)] + names[1]


def pack_four(b: Builder, inst: PtxInst) -> None:
    """Four f32 to four of a narrow format, with random bits. The first step converts two of them to the upper half; the
    second step takes this half and the remaining random bits."""
    b.need(inst, "stochastic-rounding")
    x = inst.operands[1]
    if "rs" not in inst.mods or not isinstance(x, ptx.Vec):
        raise b.unsupported(inst)
    f = [b.in_reg(b.src(e, "f32")) for e in x.elems]
    upper = b.r()
    op = f"F2FP{_clamp_mods(inst)}.{_PACKED[inst.types[0][:-2] + 'x2'][0]}.F32.PACK_AB_MERGE_C.RS"
    b.emit(op, upper, (f[0], f[1], b.in_reg(b.src(inst.operands[2], "b32"))))
    b.emit(op, b.dst(inst.operands[0], inst.types[0]), (f[2], f[3], upper))


def pack_half(b: Builder, inst: PtxInst) -> None:
    """A pair of f16 (or bf16) to a pair of a narrower format."""
    name, feature = _PACKED[inst.types[0]]
    b.need(inst, feature)
    st = _PACKED[inst.types[1]][0]
    if st == "BF16":
        b.need(inst, "narrow-from-bf16")
    x = b.in_reg(b.src(inst.operands[1], inst.types[1]))
    op = f"F2FP{_clamp_mods(inst)}.{name}.{st}.UNPACK_B_MERGE_C{_narrow_rounding(b, inst)}"
    b.emit(op, b.dst(inst.operands[0], inst.types[0]), (x, _below(b, inst, 2)))


def unpack_narrow(b: Builder, inst: PtxInst) -> None:
    """A pair of a narrow format to a pair of f16 or bf16."""
    dt, st = inst.types
    name, feature = _PACKED[st]
    b.need(inst, feature)
    x = b.in_reg(b.src(inst.operands[1], st))
    scale = (_scale(b, inst, 2)._replace(mod="H0"),) if dt == "bf16x2" and st != "ue8m0x2" else ()
    b.emit(f"F2FP{_clamp_mods(inst)}.{_PACKED[dt][0]}.{name}.UNPACK_B", b.dst(inst.operands[0], dt), (x, *scale))


_FLOATS: Final = ("f16", "bf16", "f32", "f64")
_NARROW: Final = tuple(_NARROW_BITS)


def _widened(rule: Rule) -> Rule:
    """A rule whose destination may be wider than its result: the words above are zero (measured: ptxas's code)."""

    def whole(b: Builder, inst: PtxInst) -> None:
        to = inst.operands[0]
        words = max(1, b.bits(inst.types[0]) // 32)
        if type(to) is not ptx.Reg or b.reg(to.index).width <= words:
            rule(b, inst)
            return
        t = b.regs[_APART] = b.r(words)
        rule(b, PtxInst(inst.op, inst.mods, inst.types, (ptx.Reg(_APART), *inst.operands[1:]), None, inst.line))
        d = b.reg(to.index)
        for i in range(d.width):
            b.copy(b.word(d, i), b.word(t, i))  # type: ignore[arg-type]

    return whole


_APART: Final = -1  # represents a register that PTX does not have

RULES: dict[str, Rule] = {
    **{f"cvt.{f}.{i}": with_sat(int_to_float) for f in _FLOATS for i in INTS},
    **{f"cvt.{i}.{f}": float_to_int for f in _FLOATS for i in INTS},
    **{f"cvt.{t}.{t}": same_type for t in _FLOATS},
    "cvt.f16.f32": with_sat(narrow_f32), "cvt.bf16.f32": with_sat(narrow_f32),
    **{f"cvt.{d}.{s}": with_sat(narrow) for d, s in (("f16", "f64"), ("bf16", "f64"), ("f16", "bf16"), ("bf16",
        "f16"))},
    "cvt.f32.f64": with_sat(f64_to_f32), "cvt.f32.f16": with_sat(half_to_f32), "cvt.f32.bf16": with_sat(half_to_f32),
    **{f"cvt.f64.{s}": with_sat(to_f64) for s in ("f16", "bf16", "f32")},
    "cvt.tf32.f32": to_tf32,
    **{f"cvt.{d}.f32": pack_f32 for d in _PACKED},
    **{f"cvt.{d}.f32": pack_four for d in ("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4")},
    **{f"cvt.{d}.f16x2": pack_half for d in _NARROW if d not in ("ue8m0x2", "s2f6x2")},
    **{f"cvt.{d}.bf16x2": pack_half for d in _NARROW},
    **{f"cvt.f16x2.{s}": unpack_narrow for s in _NARROW if s not in ("ue8m0x2", "s2f6x2")},
    **{f"cvt.bf16x2.{s}": unpack_narrow for s in _NARROW},
}  # fmt: skip
for _name, _rule in RULES.items():
    if _rule is not float_to_int:
        RULES[_name] = _widened(_rule)
