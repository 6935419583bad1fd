"""Bitwise logic, shifts, fields, counts, permutes, selection and comparison."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import NEG, PT, RZ, Imm, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder, Rule, is_signed
from stages.lower.rules.integer import Val, add32, compare, compare_into, logic, sign_word

# PTX comparison -> SASS; the unsigned spellings mean the same on an unsigned type.
CMP = {
    "eq": "EQ",
    "ne": "NE",
    "lt": "LT",
    "le": "LE",
    "gt": "GT",
    "ge": "GE",
    "lo": "LT",
    "ls": "LE",
    "hi": "GT",
    "hs": "GE",
}
_LUT = {"and": 0xC0, "or": 0xFC, "xor": 0x3C}
_INTS = frozenset(f"{k}{n}" for k in "usb" for n in (8, 16, 32, 64))


def _need_int(b: Builder, inst: PtxInst, t: str) -> None:
    if t not in _INTS:
        raise b.unsupported(inst)


# --------------------------------------------------------------------------- logic


def pred_logic(b: Builder, d: Reg, lut: int, x: Reg, y: Reg = PT, z: Reg = PT) -> None:
    """Predicate d = function of three predicates by truth table."""
    b.emit("PLOP3.LUT", (d, PT), (x, y, z, Imm("I", lut), Imm("I", 0)))


def bitwise(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x, y = b.src(inst.operands[1], t), b.src(inst.operands[2], t)
    if t == "pred":
        pred_logic(b, d, _LUT[inst.op], x, y)  # type: ignore[arg-type]
        return
    for i in range(d.width):
        u, v = b.word(x, i), b.word(y, i)
        if type(u) is Imm:
            u, v = v, u
        logic(b, b.word(d, i), _LUT[inst.op], u, v)


def not_(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x = b.src(inst.operands[1], t)
    if t == "pred":
        pred_logic(b, d, 0x0F, x)  # type: ignore[arg-type]
        return
    for i in range(d.width):
        logic(b, b.word(d, i), 0x0F, b.word(x, i))


def cnot(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    p, _ = compare(b, "EQ", "u" + t[1:], b.src(inst.operands[1], t), Imm("I", 0))
    b.select(d, Imm("I", 1), Imm("I", 0), p)


def lop3(b: Builder, inst: PtxInst) -> None:
    """lop3.b32, with a predicate result in the .and / .or forms."""
    x, y, z = (b.src(o, "b32") for o in inst.operands[1:4])
    lut = inst.operands[4]
    if not isinstance(lut, ptx.Imm):
        raise b.unsupported(inst, "truth table is not a constant")
    srcs: list[Val] = [b.in_reg(x), y, b.in_reg(z) if type(z) is Imm else z, Imm("I", lut.value & 0xFF)]
    to = inst.operands[0]
    if isinstance(to, ptx.Pair):
        q = b.src(inst.operands[5], "pred")
        op = "LOP3.LUT.PAND" if inst.has("and") else "LOP3.LUT"
        b.emit(op, (b.dst(to.second, "pred"), b.dst(to.first)), (*srcs, q))
    else:
        b.emit("LOP3.LUT", b.dst(to), srcs)


# --------------------------------------------------------------------------- shifts


def shift_left(b: Builder, d: Reg, x: Val, n: Val) -> None:
    """d = x << n, 32 or 64 bits; 0 for n at or over the width."""
    if d.width == 2:
        x = b.in_reg(x, 2)
        hi = b.r()
        b.emit("SHF.L.U64.HI", hi, (b.lo(x), n, b.hi(x)))
        b.emit("SHF.L.U32", b.word(d, 0), (b.lo(x), n, RZ))
        b.copy(b.hi_r(d), hi)
    else:
        b.emit("SHF.L.U32", d, (b.in_reg(x), n, RZ))


def shift_right(b: Builder, d: Reg, x: Val, n: Val, signed: bool) -> None:
    """d = x >> n, 32 or 64 bits; 0 or the sign for n at or over the width."""
    s = "S" if signed else "U"
    if d.width == 2:
        x = b.in_reg(x, 2)
        lo = b.r()
        b.emit(f"SHF.R.{s}64", lo, (b.lo(x), n, b.hi(x)))
        b.emit(f"SHF.R.{s}32.HI", b.word(d, 1), (RZ, n, b.hi(x)))
        b.copy(b.lo_r(d), lo)
    else:
        b.emit(f"SHF.R.{s}32.HI", d, (RZ, n, b.in_reg(x)))


def _amount(b: Builder, x: ptx.Operand) -> Val:
    n = b.src(x, "u32")
    return b.lo(n)


def shl(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    shift_left(b, b.dst(inst.operands[0], t), b.src(inst.operands[1], t), _amount(b, inst.operands[2]))


def shr(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    x = b.ext(b.src(inst.operands[1], t), t)
    shift_right(b, b.dst(inst.operands[0], t), x, _amount(b, inst.operands[2]), is_signed(t))


def shf(b: Builder, inst: PtxInst) -> None:
    lo, hi, n = (b.src(o, "b32") for o in inst.operands[1:4])
    w = ".W" if inst.has("wrap") else ""
    op = f"SHF.L{w}.U32.HI" if inst.has("l") else f"SHF.R{w}.U32"
    b.emit(op, b.dst(inst.operands[0]), (b.in_reg(lo), n, b.in_reg(hi)))


# --------------------------------------------------------------------------- fields


def low_byte(b: Builder, x: Val) -> Val:
    """Bits 0 to 7, zero-extended: what position and length operands mean."""
    if type(x) is Imm:
        return Imm("I", x.value & 0xFF)
    d = b.r()
    b.emit("LOP3.LUT", d, (x, Imm("I", 0xFF), RZ, Imm("I", 0xC0)))
    return d


def bfe(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    s = is_signed(t)
    d = b.dst(inst.operands[0], t)
    x = b.src(inst.operands[1], t)
    pos, length = (low_byte(b, b.src(o, "u32")) for o in inst.operands[2:4])
    v = b.r(d.width)
    shift_right(b, v, x, pos, s)
    if d.width == 1:
        b.emit("SGXT" if s else "SGXT.U32", d, (v, length))
        return
    # 64 bits: shift the field up against the top and back down; by 64 - min(length, 64)
    n = b.r()
    m = b.r()
    from stages.lower.rules.integer import minmax, negated

    minmax(b, m, "u32", b.in_reg(length), Imm("I", 64), False)
    add32(b, n, Imm("I", 64), negated(m))
    up = b.r(2)
    shift_left(b, up, v, n)
    shift_right(b, d, up, n, s)


def bfi(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x, base = (b.src(o, t) for o in inst.operands[1:3])
    pos, length = (low_byte(b, b.src(o, "u32")) for o in inst.operands[3:5])
    m, v = b.r(d.width), b.r(d.width)
    if d.width == 1:
        b.emit("BMSK", m, (b.in_reg(pos), length))
    else:  # ((1 << length) - 1) << pos
        ones, low = b.r(2), b.r(2)
        shift_left(b, ones, Imm("I", (1 << 64) - 1), length)
        for i in range(2):
            logic(b, b.word(low, i), 0x0F, b.word(ones, i))
        shift_left(b, m, low, pos)
    shift_left(b, v, x, pos)
    for i in range(d.width):  # mask ? v : base, with the mask in the middle
        logic(b, b.word(d, i), 0xE2, b.word(v, i), b.word(m, i), b.in_reg(b.word(base, i)))


def szext(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    op = "SGXT" + (".W" if inst.has("wrap") else "") + ("" if is_signed(t) else ".U32")
    b.emit(op, b.dst(inst.operands[0]), (b.in_reg(b.src(inst.operands[1], t)), b.src(inst.operands[2], "u32")))


def bmsk(b: Builder, inst: PtxInst) -> None:
    op = "BMSK.W" if inst.has("wrap") else "BMSK"
    b.emit(op, b.dst(inst.operands[0]), (b.in_reg(b.src(inst.operands[1], "b32")), b.src(inst.operands[2], "b32")))


_PRMT_MODES = {"f4e": "F4E", "b4e": "B4E", "rc8": "RC8", "ecl": "ECL", "ecr": "ECR", "rc16": "RC16"}


def prmt(b: Builder, inst: PtxInst) -> None:
    x, y, c = (b.src(o, "b32") for o in inst.operands[1:4])
    mode = "".join(f".{_PRMT_MODES[m]}" for m in inst.mods if m in _PRMT_MODES)
    b.emit(f"PRMT{mode}", b.dst(inst.operands[0]), (b.in_reg(x), c, b.in_reg(y) if type(c) is Imm else y))


# --------------------------------------------------------------------------- counts


def popc(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0])
    x = b.src(inst.operands[1], t)
    if b.bits(t) == 64:
        u, v = b.r(), b.r()
        b.emit("POPC", u, (b.in_reg(b.lo(x)),))
        b.emit("POPC", v, (b.in_reg(b.hi(x)),))
        add32(b, d, u, v)
    else:
        b.emit("POPC", d, (b.in_reg(x),))


def clz(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0])
    x = b.src(inst.operands[1], t)
    f = b.r()
    if b.bits(t) == 64:
        x = b.in_reg(x, 2)
        w, base = b.r(), b.r()
        p, _ = compare(b, "NE", "u32", b.hi(x), Imm("I", 0))
        b.emit("SEL", w, (b.hi(x), b.lo(x), p))
        b.select(base, Imm("I", 31), Imm("I", 63), p)
        b.emit("FLO.U32", f, (w,))
        b.emit("IADD3", d, (base, f._replace(flags=NEG), RZ))
    else:
        b.emit("FLO.U32", f, (b.in_reg(x),))
        b.emit("IADD3", d, (f._replace(flags=NEG), Imm("I", 31), RZ))


def bfind(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    s = is_signed(t)
    d = b.dst(inst.operands[0])
    x = b.src(inst.operands[1], t)
    sh = inst.has("shiftamt")
    if b.bits(t) == 32:
        b.emit("FLO" + ("" if s else ".U32") + (".SH" if sh else ""), d, (b.in_reg(x),))
        return
    x = b.in_reg(x, 2)
    lo, hi = b.lo(x), b.hi(x)
    if s:  # the highest bit that differs from the sign
        m = sign_word(b, hi)
        u, v = b.r(), b.r()
        logic(b, u, 0x3C, lo, m)
        logic(b, v, 0x3C, hi, m)
        lo, hi = u, v
    w, f, add, r = b.r(), b.r(), b.r(), b.r()
    p, _ = compare(b, "NE", "u32", hi, Imm("I", 0))
    b.emit("SEL", w, (b.in_reg(hi), lo, p))
    b.emit("FLO.U32", f, (w,))
    b.select(add, Imm("I", 32), Imm("I", 0), p)
    none, _ = compare(b, "EQ", "u32", w, Imm("I", 0))
    if sh:
        top = b.r()
        add32(b, top, f, add)
        add32(b, r, Imm("I", 63), top._replace(flags=NEG))
    else:
        add32(b, r, f, add)
    b.select(d, Imm("I", 0xFFFFFFFF), r, none)


def brev(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x = b.in_reg(b.src(inst.operands[1], t), d.width)
    if d.width == 2:
        lo = b.r()
        b.emit("BREV", lo, (b.hi(x),))
        b.emit("BREV", b.word(d, 1), (b.lo(x),))
        b.copy(b.lo_r(d), lo)
    else:
        b.emit("BREV", d, (x,))


# --------------------------------------------------------------------------- comparison and selection


def setp(b: Builder, inst: PtxInst) -> None:
    """setp.cmp[.bop].type p[|q], a, b[, c] on integer and bit types."""
    t = inst.types[0]
    _need_int(b, inst, t)
    cmp = next((CMP[m] for m in inst.mods if m in CMP), None)
    if cmp is None:
        raise b.unsupported(inst)
    to = inst.operands[0]
    p, q = (b.dst(to.first, "pred"), b.dst(to.second, "pred")) if isinstance(to, ptx.Pair) else (b.dst(to, "pred"), PT)
    x, y = b.src(inst.operands[1], t), b.src(inst.operands[2], t)
    c: Reg = b.src(inst.operands[3], "pred") if len(inst.operands) > 3 else PT  # type: ignore[assignment]
    bop = next((m.upper() for m in inst.mods if m in ("and", "or", "xor")), "AND")
    compare_into(b, p, q, cmp, t, x, y, bop, c)


def set_(b: Builder, inst: PtxInst) -> None:
    """set.cmp[.bop].dtype.stype: all ones or 1.0f."""
    dt, st = inst.types[0], inst.types[1]
    _need_int(b, inst, st)
    cmp = next((CMP[m] for m in inst.mods if m in CMP), None)
    if cmp is None or dt not in ("u32", "s32", "f32"):
        raise b.unsupported(inst)
    x, y = b.src(inst.operands[1], st), b.src(inst.operands[2], st)
    c: Reg = b.src(inst.operands[3], "pred") if len(inst.operands) > 3 else PT  # type: ignore[assignment]
    bop = next((m.upper() for m in inst.mods if m in ("and", "or", "xor")), "AND")
    p, _ = compare(b, cmp, st, x, y, bop, c)
    b.emit("SEL", b.dst(inst.operands[0]), (RZ, Imm("I", 0x3F800000 if dt == "f32" else 0xFFFFFFFF), b.not_(p)))


def set_packed(b: Builder, inst: PtxInst) -> None:
    """set of packed integers: all ones in each element for which it holds."""
    b.need(inst, "packed-comparisons")
    t = inst.types[0]
    cmp = next(CMP[m] for m in inst.mods if m in CMP)
    x, y = (b.in_reg(b.src(o, t)) for o in inst.operands[1:3])
    b.emit(f"VISET.BM.{cmp}.{t.upper().replace('X', 'x')}", b.dst(inst.operands[0], t), (x, y))


def selp(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    p = b.src(inst.operands[3], "pred")
    to, yes, no = b.dst(inst.operands[0], t), b.src(inst.operands[1], t), b.src(inst.operands[2], t)
    b.select(to, yes, no, p)  # type: ignore[arg-type]


def slct(b: Builder, inst: PtxInst) -> None:
    """d = c >= 0 ? a : b; an f32 NaN counts as not."""
    dt, ct = inst.types[0], inst.types[1]
    c = b.src(inst.operands[3], ct)
    p = b.p()
    if ct == "f32":
        if inst.has("ftz"):
            b.emit("FSETP.GE.FTZ.AND", (p, PT), (b.in_reg(c), RZ, PT))
        else:
            b.emit("FSETP.GE.AND", (p, PT), (b.in_reg(c), RZ, PT))
    else:
        b.emit("ISETP.GE.AND", (p, PT), (b.in_reg(c), RZ, PT))
    b.select(b.dst(inst.operands[0], dt), b.src(inst.operands[1], dt), b.src(inst.operands[2], dt), p)


# --------------------------------------------------------------------------- dot products


def dp(b: Builder, inst: PtxInst) -> None:
    """dp4a, dp2a: IDP up to sm_90; multiply and add byte by byte later, where the instruction is gone."""
    at, bt = inst.types[0], inst.types[1]
    d = b.dst(inst.operands[0])
    x, y, c = (b.src(o, "b32") for o in inst.operands[1:4])
    if b.has("dot-product"):
        kind = "4A" if inst.op == "dp4a" else "2A.HI" if inst.has("hi") else "2A.LO"
        wa = "8" if inst.op == "dp4a" else "16"
        b.emit(f"IDP.{kind}.{at[0].upper()}{wa}.{bt[0].upper()}8", d, (b.in_reg(x), y, b.in_reg(c)))
        return
    acc: Val = b.in_reg(c)
    n = 4 if inst.op == "dp4a" else 2
    for i in range(n):
        u = _piece(b, x, i, 8 if n == 4 else 16, is_signed(at))
        v = _piece(b, y, i + (2 if n == 2 and inst.has("hi") else 0), 8, is_signed(bt))
        to = d if i == n - 1 else b.r()
        b.emit("IMAD", to, (u, v, acc))
        acc = to


def _piece(b: Builder, x: Val, i: int, bits: int, s: bool) -> Reg:
    """Byte or half ``i`` of a word, extended."""
    d = b.r()
    if bits == 8:
        sel = i | (8 | i) << 4 | (8 | i) << 8 | (8 | i) << 12 if s else 0x4440 | i
    else:
        lo, hi = 2 * i, 2 * i + 1
        sel = lo | hi << 4 | ((8 | hi) << 8 | (8 | hi) << 12 if s else 0x4400)
    b.emit("PRMT", d, (b.in_reg(x), Imm("I", sel), RZ))
    return d


def fns(b: Builder, inst: PtxInst) -> None:
    """The n-th set bit: a function of the library."""
    args = [b.src(x, "b32") for x in inst.operands[1:4]]
    with b.region():
        b.copy(b.dst(inst.operands[0]), b.call_helper("__orias_fns", args)[0])


RULES: dict[str, Rule] = {
    "fns": fns,
    **{op: bitwise for op in _LUT},
    "not": not_, "cnot": cnot, "lop3": lop3, "shl": shl, "shr": shr, "shf": shf, "bfe": bfe, "bfi": bfi, "szext": szext,
    "bmsk": bmsk,
    "prmt": prmt, "popc": popc, "clz": clz, "bfind": bfind, "brev": brev, "setp": setp, "set": set_,
    **{f"set.{t}": set_packed for t in ("u8x4", "s8x4", "u16x2", "s16x2")}, "selp": selp,
    "slct": slct,
    "dp4a": dp, "dp2a": dp,
}  # fmt: skip
