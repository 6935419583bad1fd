"""Integer add, multiply, minimum, absolute value, carry chains."""

from __future__ import annotations

from ir_format.model import INV, NEG, NOT_PT, PT, RZ, RZ2, Imm, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder, Rule, is_signed

Val = Reg | Imm


# --------------------------------------------------------------------------- building blocks (also used by other
# modules)


def negated(x: Val) -> Val:
    """The operand ``-x`` of a 32-bit addition."""
    if type(x) is Imm:
        return Imm("I", -x.value & 0xFFFFFFFF)
    return x._replace(flags=x.flags ^ NEG)


def complement(x: Val) -> Val:
    """The operand ``~x`` of an IADD3.X."""
    if type(x) is Imm:
        return Imm("I", ~x.value & 0xFFFFFFFF)
    return x._replace(flags=x.flags ^ INV)


def add32(b: Builder, d: Reg, x: Val, y: Val, z: Val = RZ) -> None:
    """d = x + y + z."""
    if type(x) is Imm:
        x, y = y, x
    b.emit("IADD3", d, (b.in_reg(x) if type(x) is Imm else x, y, z))


def add64(b: Builder, d: Reg, x: Val, y: Val) -> None:
    """d = x + y, 64 bits."""
    if type(x) is Imm:
        x, y = y, x
    c = b.p()
    b.emit("IADD3", (b.word(d, 0), c), (b.in_reg(b.lo(x)), b.lo(y), RZ))
    b.emit("IADD3.X", b.word(d, 1), (b.in_reg(b.hi(x)), b.hi(y), RZ, c))


def sub64(b: Builder, d: Reg, x: Val, y: Val) -> None:
    """d = x - y, 64 bits."""
    if type(y) is Imm:
        add64(b, d, x, Imm("I", -y.value & (1 << 64) - 1))
        return
    assert isinstance(y, Reg)
    c = b.p()
    b.emit("IADD3", (b.word(d, 0), c), (b.in_reg(b.lo(x)), negated(b.lo(y)), RZ))
    b.emit("IADD3.X", b.word(d, 1), (b.in_reg(b.hi(x)), complement(b.hi(y)), RZ, c))


def wide(b: Builder, signed: bool, d: Reg, x: Val, y: Val, c: Val = RZ2) -> None:
    """d (64 bits) = x * y + c."""
    b.emit("IMAD.WIDE" if signed else "IMAD.WIDE.U32", d, (b.in_reg(x), y, c if type(c) is Reg else b.in_reg(c, 2)))


def mul64(b: Builder, d: Reg, x: Val, y: Val, c: Val = RZ2) -> None:
    """d = low 64 bits of x * y + c."""
    x = b.in_reg(x, 2)
    t = b.r(2)
    wide(b, False, t, b.lo(x), b.lo(y), c)
    if type(y) is Imm and y.value >> 32 == 0:
        u = b.hi_r(t)
    else:
        u = b.r()
        b.emit("IMAD", u, (b.lo(x), b.hi(y), b.hi(t)))
    v = b.r()
    b.emit("IMAD", v, (b.hi(x), b.lo(y), u))
    b.copy(b.lo_r(d), b.lo(t))
    b.copy(b.hi_r(d), v)


def pair(b: Builder, lo: Val, hi: Val) -> Reg:
    """A fresh 64-bit register of two words."""
    d = b.r(2)
    b.copy(b.lo_r(d), lo)
    b.copy(b.hi_r(d), hi)
    return d


def mulhi64(b: Builder, signed: bool, x: Val, y: Val) -> Reg:
    """High 64 bits of the 128-bit product: four 32 x 32 products chained by carries (the shape that ptxas uses)."""
    constant = y.value if type(y) is Imm else None
    x, y = b.in_reg(x, 2), b.in_reg(y, 2)
    upper, middle, lower, out = b.r(2), b.r(2), b.r(2), b.r(2)
    carry, low_carry = b.p(), b.p()
    wide(b, False, upper, b.hi(x), b.lo(y))
    b.emit("IMAD.WIDE.U32", (middle, carry), (b.lo(x), b.hi(y), upper))
    wide(b, False, lower, b.lo(x), b.lo(y))
    b.emit("IADD3", (RZ, low_carry), (b.hi(lower), b.lo(middle), RZ))
    top = b.r(2)
    b.copy(b.lo_r(top), b.hi(middle))
    b.emit("IADD3.X", b.hi_r(top), (RZ, RZ, RZ, carry))
    b.emit("IMAD.WIDE.U32.X", out, (b.hi(x), b.hi(y), top, low_carry))
    if signed:  # hi_s = hi_u - (x < 0 ? y : 0) - (y < 0 ? x : 0)
        for u, v, sign in ((x, y, None), (y, x, constant)):
            if sign is not None and not sign >> 63 & 1:
                continue
            m = sign_word(b, b.hi(u))
            t = b.r(2)
            for i in range(2):
                logic(b, b.word(t, i), 0xC0, m, b.word(v, i))
            nxt = b.r(2)
            sub64(b, nxt, out, t)
            out = nxt
    return out


def sign_word(b: Builder, x: Val) -> Reg:
    """All ones if the 32-bit value is negative, else 0."""
    d = b.r()
    b.emit("SHF.R.S32.HI", d, (RZ, Imm("I", 31), b.in_reg(x)))
    return d


def logic(b: Builder, d: Reg | Imm, lut: int, x: Val, y: Val = RZ, z: Val = RZ) -> None:
    """Bitwise function of up to three operands; truth table 0xF0, 0xCC, 0xAA for x, y, z."""
    b.emit("LOP3.LUT", d, (b.in_reg(x), y, b.in_reg(z) if type(z) is Imm else z, Imm("I", lut)))


def compare(b: Builder, cmp: str, t: str, x: Val, y: Val, bop: str = "AND", c: Reg = PT) -> tuple[Reg, Reg]:
    """(p, q) = (x cmp y bop c, not(x cmp y) bop c) for any integer type."""
    p, q = b.p(), b.p()
    compare_into(b, p, q, cmp, t, x, y, bop, c)
    return p, q


def compare_into(b: Builder, p: Reg, q: Reg, cmp: str, t: str, x: Val, y: Val, bop: str, c: Reg) -> None:
    u = "" if is_signed(t) else ".U32"
    if b.bits(t) == 64:
        low = b.p()
        x = b.in_reg(x, 2)
        b.emit(f"ISETP.{cmp}.U32.AND", (low, PT), (b.lo(x), b.lo(y), PT))
        b.emit(f"ISETP.{cmp}{u}.{bop}.EX", (p, q), (b.hi(x), b.hi(y), c, low))
        return
    b.emit(f"ISETP.{cmp}{u}.{bop}", (p, q), (b.in_reg(b.ext(x, t)), b.ext(y, t), c))


def minmax(b: Builder, d: Reg, t: str, x: Val, y: Val, want_max: bool) -> None:
    """d = min or max of two integers of type ``t``."""
    n = b.bits(t)
    if n == 64:
        x = b.in_reg(x, 2)
        p, _ = compare(b, "GT" if want_max else "LT", t, x, y)
        b.select(d, x, y, p)
        return
    sel = NOT_PT if want_max else PT
    if not b.has("int-min-max-vector"):
        op = "IMNMX" if is_signed(t) else "IMNMX.U32"
    elif not b.has("int-min-max-typed"):
        op = "VIMNMX" if is_signed(t) else "VIMNMX.U32"
    else:
        op = "VIMNMX.S32" if is_signed(t) else "VIMNMX.U32"
    b.emit(op, d, (b.in_reg(b.ext(x, t)), b.ext(y, t), sel))


# --------------------------------------------------------------------------- rules


def _args(b: Builder, inst: PtxInst, n: int) -> list[Val]:
    t = inst.types[0]
    return [b.src(x, t) for x in inst.operands[1 : n + 1]]


def carry(b: Builder) -> Reg:
    """The vreg of PTX's carry flag. It is the carry of the adder. After a subtraction, 1 means *no borrow* (measured on
    ptxas's code: `sub.cc`, then `addc`, adds 1 if there was no borrow). So the flags of sums, differences and products
    can be combined."""
    got = b.cache.get("cc")
    if got is None:
        got = b.cache["cc"] = b.fn.new_vreg("P", name="CC.CF")
    return got


def add_flags(b: Builder, d: Reg, x: Val, y: Val, cin: bool, cout: bool, minus: bool) -> None:
    """d = x +- y with the carry flag in and out; any width of d. A difference is the sum x + ~y + 1, or x + ~y +
    flag."""
    cc = carry(b)
    n = d.width
    if minus and type(y) is Imm:
        y = b.in_reg(y, n)
    link: Reg | None = cc if cin else None
    out: list[Reg] = []
    for i in range(n):
        u, v = b.in_reg(b.word(x, i)), b.word(y, i)
        last = i == n - 1
        o = b.p() if not last else cc if cout and b.guard is None else b.p() if cout else PT
        t = b.r()
        if link is None:
            b.emit("IADD3", (t, o), (u, negated(v) if minus else v, RZ))
        else:
            b.emit("IADD3.X", (t, o), (u, complement(v) if minus else v, RZ, link))
        out.append(t)
        link = o
    if cout and b.guard is not None:  # the guard is for the flag and d; the sum is a temporary
        assert link is not None
        b.emit("PLOP3.LUT", (cc, PT), (link, PT, PT, Imm("I", 0xF0), Imm("I", 0)))
    for i, t in enumerate(out):
        b.copy(b.word(d, i), t)  # type: ignore[arg-type]


def saturated(b: Builder, d: Reg, x: Val, y: Val, minus: bool) -> None:
    """s32 sum or difference, clamped."""
    x, y = b.in_reg(x), b.in_reg(y)
    s, o, big = b.r(), b.r(), b.r()
    b.emit("IADD3", s, (x, negated(y) if minus else y, RZ))
    # overflow: the sign of s differs from x's, and y's sign (inverted for a sum) does too
    logic(b, o, ((0xF0 ^ 0xCC) if minus else (0xF0 ^ 0xCC ^ 0xFF)) & (0xF0 ^ 0xAA) & 0xFF, x, y, s)
    logic(b, big, 0x3C, sign_word(b, x), Imm("I", 0x7FFFFFFF))
    p, _ = compare(b, "LT", "s32", o, Imm("I", 0))
    b.emit("SEL", d, (big, s, p))


#: Types whose sums VIADD has, with its names for them (it clamps with .ISAT).
_PACKED_ADD = {"u8x4": "U8x4", "s8x4": "S8x4", "u16x2": "16x2", "s16x2": "S16x2", "u32": "32"}


def add_sub(b: Builder, inst: PtxInst) -> None:
    minus = inst.op in ("sub", "subc")
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x, y = _args(b, inst, 2)
    if t in _PACKED_ADD and (inst.has("sat") or t.endswith("x4")):
        b.need(inst, "packed-bytes")
        clamp = ".ISAT" if inst.has("sat") else ""
        b.emit(f"VIADD.{_PACKED_ADD[t]}{clamp}", d, (b.in_reg(x), negated(b.in_reg(y)) if minus else y))
    elif inst.has("sat"):
        saturated(b, d, x, y, minus)
    elif inst.has("cc") or inst.op in ("addc", "subc"):
        add_flags(b, d, x, y, inst.op in ("addc", "subc"), inst.has("cc"), minus)
    elif t in ("u16x2", "s16x2"):
        _halves(b, d, x, y, lambda u, v: _add_half(b, u, v, minus))
    elif b.bits(t) == 64:
        (sub64 if minus else add64)(b, d, x, y)
    else:
        add32(b, d, *((x, negated(y)) if minus and type(x) is Reg else (negated(y), x) if minus else (x, y)))


def _add_half(b: Builder, u: Val, v: Val, minus: bool) -> Reg:
    d = b.r()
    b.emit("IADD3", d, (b.in_reg(u), negated(v) if minus else v, RZ))
    return d


def _halves(b: Builder, d: Reg, x: Val, y: Val, f) -> None:  # type: ignore[no-untyped-def]
    """Apply ``f`` to the two 16-bit halves and pack."""
    out: list[Reg] = []
    for sel in (0x7710, 0x7732):
        parts: list[Reg] = []
        for v in (x, y):
            h = b.r()
            b.emit("PRMT", h, (b.in_reg(v), Imm("I", sel), RZ))
            parts.append(h)
        out.append(f(*parts))
    b.emit("PRMT", d, (out[0], Imm("I", 0x5410), out[1]))


def mul(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    n = b.bits(t)
    x, y = _args(b, inst, 2)
    s = is_signed(t)
    if inst.has("wide"):
        if n == 64:
            raise b.unsupported(inst)
        d = b.dst(inst.operands[0], "b64" if n == 32 else "b32")
        if n == 32:
            wide(b, s, d, x, y)
        else:
            b.emit("IMAD", d, (b.in_reg(b.ext(x, t)), b.ext(y, t), RZ))
        return
    d = b.dst(inst.operands[0], t)
    if inst.has("hi"):
        _mul_hi(b, d, t, x, y)
    elif n == 64:
        mul64(b, d, x, y)
    else:
        b.emit("IMAD", d, (b.in_reg(x), y, RZ))


def _mul_hi(b: Builder, d: Reg, t: str, x: Val, y: Val) -> None:
    n = b.bits(t)
    s = is_signed(t)
    if n == 64:
        b.copy(d, mulhi64(b, s, x, y))
    elif n == 32:
        b.emit("IMAD.HI" if s else "IMAD.HI.U32", d, (b.in_reg(x), y, RZ2))
    else:
        p = b.r()
        b.emit("IMAD", p, (b.in_reg(b.ext(x, t)), b.ext(y, t), RZ))
        b.emit("SHF.R.U32.HI", d, (RZ, Imm("I", 16), p))


def mad(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    n = b.bits(t)
    s = is_signed(t)
    x, y = _args(b, inst, 2)
    flags = inst.has("cc") or inst.op == "madc"
    if inst.has("wide"):
        if n == 64 or flags:
            raise b.unsupported(inst)
        w = "b64" if n == 32 else "b32"
        d = b.dst(inst.operands[0], w)
        c = b.src(inst.operands[3], w)
        if n == 32:
            wide(b, s, d, x, y, c)
        else:
            b.emit("IMAD", d, (b.in_reg(b.ext(x, t)), b.ext(y, t), b.in_reg(c)))
        return
    d = b.dst(inst.operands[0], t)
    c = b.src(inst.operands[3], t)
    if flags or inst.has("sat") or inst.has("hi"):
        p = b.r(d.width)
        if inst.has("hi"):
            _mul_hi(b, p, t, x, y)
        elif n == 64:
            mul64(b, p, x, y)
        else:
            b.emit("IMAD", p, (b.in_reg(x), y, RZ))
        if flags:
            add_flags(b, d, p, c, inst.op == "madc", inst.has("cc"), False)
        elif inst.has("sat"):
            saturated(b, d, p, c, False)
        elif n == 64:
            add64(b, d, p, c)
        else:
            add32(b, d, p, c)
    elif n == 64:
        mul64(b, d, x, y, c)
    else:
        b.emit("IMAD", d, (b.in_reg(x), y, b.in_reg(c) if type(y) is Imm else c))


def mul24(b: Builder, inst: PtxInst) -> None:
    """mul24 and mad24: 24-bit factors; .hi takes bits 16 to 47 of the product."""
    t = inst.types[0]
    s = is_signed(t)
    d = b.dst(inst.operands[0], t)
    x, y = (_field24(b, v, s) for v in _args(b, inst, 2))
    c: Val = b.src(inst.operands[3], t) if inst.op == "mad24" else RZ
    if inst.has("lo"):
        b.emit("IMAD", d, (x, y, b.in_reg(c)))
        return
    p, h = b.r(2), b.r()
    wide(b, s, p, x, y)
    b.emit("SHF.R.U64", h, (b.lo(p), Imm("I", 16), b.hi(p)))
    if inst.op == "mul24":
        b.copy(d, h)
    elif inst.has("sat"):
        saturated(b, d, h, c, False)
    else:
        add32(b, d, h, c)


def _field24(b: Builder, x: Val, s: bool) -> Reg:
    d = b.r()
    b.emit("SGXT" if s else "SGXT.U32", d, (b.in_reg(x), Imm("I", 24)))
    return d


def sad(b: Builder, inst: PtxInst) -> None:
    """d = c + |a - b|."""
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x, y, c = _args(b, inst, 3)
    hi, lo = b.r(d.width), b.r(d.width)
    x, y = b.in_reg(x, d.width), b.in_reg(y, d.width)
    minmax(b, hi, t, x, y, True)
    minmax(b, lo, t, x, y, False)
    if d.width == 2:
        v = b.r(2)
        sub64(b, v, hi, lo)
        add64(b, d, v, c)
    else:
        b.emit("IADD3", d, (hi, negated(lo), b.in_reg(c)))


def min_max(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x, y = _args(b, inst, 2)
    want_max = inst.op == "max"
    if t in ("u8x4", "s8x4"):
        b.need(inst, "packed-bytes")
        op = f"VIMNMX.{_PACKED_ADD[t]}{'.RELU' if inst.has('relu') else ''}"
        b.emit(op, d, (b.in_reg(x), y, NOT_PT if want_max else PT))
        return
    if t in ("u16x2", "s16x2"):
        half = t[:3]

        def one(u: Val, v: Val) -> Reg:
            r = b.r()
            minmax(b, r, half, u, v, want_max)
            if inst.has("relu"):
                r2 = b.r()
                minmax(b, r2, half, r, Imm("I", 0), True)
                return r2
            return r

        _halves(b, d, x, y, one)
        return
    if inst.has("relu"):
        r = b.r(d.width)
        minmax(b, r, t, x, y, want_max)
        minmax(b, d, t, r, Imm("I", 0), True)
        return
    minmax(b, d, t, x, y, want_max)


def abs_(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    (x,) = _args(b, inst, 1)
    if b.bits(t) == 64:
        x = b.in_reg(x, 2)
        m = sign_word(b, b.hi(x))
        f = b.r(2)
        for i in range(2):
            logic(b, b.word(f, i), 0x3C, b.word(x, i), m)
        sub64(b, d, f, pair(b, m, m))
    else:
        b.emit("IABS", d, (b.ext(x, t),))


def neg(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    (x,) = _args(b, inst, 1)
    if t == "s8x4":
        b.need(inst, "packed-bytes")
        b.emit("VIADD.S8x4", d, (negated(b.in_reg(x)), RZ))
    elif b.bits(t) == 64:
        sub64(b, d, RZ2, x)
    else:
        b.emit("IADD3", d, (RZ, negated(x), RZ))


def clmad(b: Builder, inst: PtxInst) -> None:
    """Half of the product of two polynomials over GF(2), and a third added to it."""
    b.need(inst, "carry-less-product")
    d = b.dst(inst.operands[0], "u64")
    x, y, z = (b.in_reg(v, 2) for v in _args(b, inst, 3))
    b.emit(f"CLMAD.{'HI' if inst.has('hi') else 'LO'}", d, (x, y, z))


RULES: dict[str, Rule] = {
    "clmad": clmad,
    **{op: add_sub for op in ("add", "sub", "addc", "subc")},
    "mul": mul,
    **{op: mad for op in ("mad", "madc")},
    **{op: mul24 for op in ("mul24", "mad24")},
    "sad": sad,
    **{op: min_max for op in ("min", "max")},
    "abs": abs_,
    "neg": neg,
}

# Keys are plain opcodes: these are the integer rules, and any float type has a rule of its own under `op.type`. A float
# type that falls through is refused.
INTEGER_TYPES = frozenset({f"{k}{n}" for k in "us" for n in (8, 16, 32, 64)} | {"u16x2", "s16x2", "u8x4", "s8x4"})


def _integer_only(rule: Rule) -> Rule:
    def checked(b: Builder, inst: PtxInst) -> None:
        if any(t not in INTEGER_TYPES for t in inst.types):
            raise b.unsupported(inst)
        rule(b, inst)

    return checked


RULES = {k: _integer_only(r) for k, r in RULES.items()}
