"""Loads, stores, prefetches, address conversion, mov."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import PT, RZ, Const, Imm, Mem, Reg
from ir_format.ptx import PtxInst
from stages.lower.abi.arguments import param_part, warn_outside
from stages.lower.builder import Builder, Rule, is_signed
from stages.lower.elements import fill_high, gather, put, put_extended, vector_of
from stages.lower.memory import (
    FunctionParam,
    acquired,
    fence,
    function_param,
    mark_strong,
    order_mods,
    order_of,
    resolve,
    with_policy,
)
from stages.lower.rules.integer import Val, compare, compare_into, logic, minmax
from stages.lower.spaces import from_generic, param_bounds, to_generic

_LOAD = {"global": "LDG.E", "generic": "LD.E", "shared": "LDS", "local": "LDL"}
_STORE = {"global": "STG.E", "generic": "ST.E", "shared": "STS", "local": "STL"}
_EVICT = {"evict_first": "EF", "evict_last": "EL", "no_allocate": "NA", "evict_unchanged": "EU", "evict_normal": ""}
_CACHE_OP = {"cs": "EF", "lu": "LU"}  # those that are an eviction hint
# Those that become a strong access of a scope (measured).
_STRONG_OP = {"ca": "cta", "cg": "gpu", "cv": "sys", "wb": "cta", "wt": "sys"}


def _size_mod(size: int, signed: bool) -> str:
    """Modifier of an access of 1, 2, 4, 8, 16 bytes."""
    return {1: ".S8" if signed else ".U8", 2: ".S16" if signed else ".U16", 4: "", 8: ".64", 16: ".128"}[size]


def _hints(b: Builder, inst: PtxInst, load: bool) -> tuple[str, str]:
    """(eviction, L2 prefetch) modifiers."""
    evict = ltc = ""
    for m in inst.mods:
        level, _, what = m.partition("::")
        if level == "L1":
            evict = _EVICT[what]
        elif level == "L2" and what in ("64B", "128B", "256B") and load:
            ltc = f".LTC{what}"
        elif m in _CACHE_OP:
            evict = _CACHE_OP[m]
    return f".{evict}" if evict else "", ltc


def _order_suffix(b: Builder, inst: PtxInst) -> str:
    o = order_of(inst)
    if o.sem == "weak":
        for m in inst.mods:
            if m in _STRONG_OP:
                o = o._replace(sem="relaxed", scope=_STRONG_OP[m])
    text = ".".join(order_mods(b, o))
    if inst.has("nc") and o.sem == "weak":
        text = "CONSTANT.SYS" if b.has("load-unsigned-named") else "CONSTANT"
    return f".{text}" if text else ""


def access_op(b: Builder, inst: PtxInst, space: str, size: int, signed: bool, load: bool) -> str:
    """The dotted SASS opcode of a load or store of ``size`` bytes."""
    op = (_LOAD if load else _STORE)[space]
    width = _size_mod(size, signed and load)
    if not load and size < 4:
        width = _size_mod(size, False)
    if space == "shared":
        return f"{op}.U{width}" if load and b.has("load-unsigned-named") else op + width
    evict, ltc = _hints(b, inst, load)
    if space == "local":
        return op + evict + width
    return op + evict + ltc + width + _order_suffix(b, inst)


def _hinted(b: Builder, inst: PtxInst, at: Mem, extra: tuple[ptx.Operand, ...]) -> Mem:
    """The address with a cache policy instead of the descriptor, if one is given."""
    return with_policy(b, at, extra[0]) if inst.has("L2::cache_hint") and extra else at


def _plus(at: Mem, n: int) -> Mem:
    return at._replace(offset=at.offset + n)


# --------------------------------------------------------------------------- ld


def ld(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    elems = vector_of(inst.operands[0])
    addr = inst.operands[1]
    param = function_param(b, addr)
    if param is not None:
        _ld_function_param(b, inst, elems, t, param)
        return
    where = resolve(b, inst, addr)
    if isinstance(where.at, Const):
        _ld_const(b, elems, t, where.at)
        return
    o = order_of(inst)
    at = _hinted(b, inst, where.at, inst.operands[2:])
    if o.sem == "mmio":
        at = at._replace(desc=None)
    n = b.bits(t) // 8
    since = len(b.block.insts)
    _load_elements(b, inst, where.space, at, elems, t, n)
    mark_strong(b, o, since)
    acquired(b, o, [d for i in b.block.insts[since:] for d in i.dsts])


def _load_elements(
    b: Builder, inst: PtxInst, space: str, at: Mem, elems: tuple[ptx.Operand, ...], t: str, n: int
) -> None:
    total = n * len(elems)
    if len(elems) == 1 and not isinstance(elems[0], ptx.Sink):
        d = b.dst(elems[0], t)
        if (total >= 4 and 4 * d.width == total) or (total < 4 and d.width == 1):
            b.emit(access_op(b, inst, space, total, is_signed(t), True), d, (at,))
            return
    if len(elems) == 1 and total < 4:
        w = b.r()
        b.emit(access_op(b, inst, space, total, is_signed(t), True), w, (at,))
        put_extended(b, elems[0], w, t)
        return
    per = 16 // n
    for first in range(0, len(elems), per):  # 256-bit accesses in two halves
        part = elems[first : first + per]
        size = n * len(part)
        words = b.r(max(1, size // 4))
        b.emit(access_op(b, inst, space, size, False, True), words, (_plus(at, n * first),))
        for i, e in enumerate(part):
            put(b, e, words, n * i, t)


def _ld_const(b: Builder, elems: tuple[ptx.Operand, ...], t: str, at: Const) -> None:
    """const and kernel parameters: MOV or LDC, word by word, pairs where they are aligned."""
    n = b.bits(t) // 8
    if n < 4:
        for i, e in enumerate(elems):
            w = b.r()
            b.emit("LDC" + _size_mod(n, is_signed(t)), w, (at._replace(offset=at.offset + n * i),))
            put_extended(b, e, w, t)
        return
    for i, e in enumerate(elems):
        if isinstance(e, ptx.Sink):
            continue
        d = b.dst(e, t)
        part = d if 4 * d.width == n else b.r(n // 4)
        _const_words(b, part, at._replace(offset=at.offset + n * i))
        if part is not d:
            put(b, e, part, 0, t)


def _const_words(b: Builder, d: Reg, at: Const) -> None:
    if at.ireg is None and b.ctx.target.alu_const:
        for i in range(d.width):
            b.emit("MOV", b.word(d, i), (at._replace(offset=at.offset + 4 * i),))
        return
    for i in range(0, d.width, 2):
        if d.width - i >= 2:
            b.emit("LDC.64", d._replace(sub=d.sub + i, width=2), (at._replace(offset=at.offset + 4 * i, width=2),))
        else:
            b.emit("LDC", b.word(d, i), (at._replace(offset=at.offset + 4 * i),))


def _ld_function_param(b: Builder, inst: PtxInst, elems: tuple[ptx.Operand, ...], t: str, param: FunctionParam) -> None:
    name, decl, offset = param
    warn_outside(b, name, decl, offset)
    n = b.bits(t) // 8
    for i, e in enumerate(elems):
        at = offset + n * i
        if isinstance(e, ptx.Sink):
            continue
        if n >= 4 and not at & 3:
            d = b.dst(e, t)
            k = 0
            for piece in param_part(b, name, decl, at, n // 4):
                b.copy(d._replace(sub=d.sub + k, width=piece.width), piece)
                k += piece.width
            for j in range(n // 4, d.width):
                fill_high(b, d, j, is_signed(t))
        elif n < 4 and (at & 3) + n <= 4:
            put(b, e, param_part(b, name, decl, at & ~3, 1)[0], at & 3, t)
        else:
            raise b.unsupported(inst, "misaligned parameter access")


# --------------------------------------------------------------------------- st


def st(b: Builder, inst: PtxInst) -> None:
    if inst.has("bulk"):
        from stages.lower.rules.bulk import fill

        fill(b, inst)
        return
    if inst.has("async"):
        from stages.lower.rules.cluster import remote, store_async

        if remote(inst):
            store_async(b, inst)
            return
    t = inst.types[0]
    addr, value = inst.operands[0], inst.operands[1]
    elems = vector_of(value)
    param = function_param(b, addr)
    if param is not None:
        _st_function_param(b, inst, elems, t, param)
        return
    where = resolve(b, inst, addr)
    if not isinstance(where.at, Mem):
        raise b.unsupported(inst, "store to constant memory")
    o = order_of(inst)
    if o.sem == "release":
        fence(b, "ALL", o.scope)
    at = _hinted(b, inst, where.at, inst.operands[2:])
    if o.sem == "mmio":
        at = at._replace(desc=None)
    n = b.bits(t) // 8
    per = max(1, 16 // n)
    since = len(b.block.insts)
    for first in range(0, len(elems), per):
        part = elems[first : first + per]
        data = gather(b, part, t)
        b.emit(access_op(b, inst, where.space, n * len(part), False, False), (), (_plus(at, n * first), data))
    mark_strong(b, o, since)


def _st_function_param(b: Builder, inst: PtxInst, elems: tuple[ptx.Operand, ...], t: str, param: FunctionParam) -> None:
    name, decl, offset = param
    warn_outside(b, name, decl, offset)
    n = b.bits(t) // 8
    for i, e in enumerate(elems):
        at = offset + n * i
        v = b.src(e, t)
        if n >= 4 and not at & 3:
            k = 0
            for piece in param_part(b, name, decl, at, n // 4):
                if piece.width == 1:
                    b.copy(piece, b.word(v, k))
                elif isinstance(v, Imm):
                    b.copy(piece, Imm("I", v.value >> (32 * k)))
                else:
                    b.copy(piece, v._replace(sub=v.sub + k, width=piece.width))
                k += piece.width
        elif n < 4 and (at & 3) + n <= 4:
            w = param_part(b, name, decl, at & ~3, 1)[0]
            low = at & 3
            if not low and decl.size <= n and name not in b.padded:
                b.copy(w, b.lo(v))
                continue
            # keep the other bytes of the word
            sel = 0
            for k in range(4):
                sel |= (4 + k - low if low <= k < low + n else k) << (4 * k)
            b.emit("PRMT", w, (w, Imm("I", sel), b.in_reg(v)))
        else:
            raise b.unsupported(inst, "misaligned parameter access")


# --------------------------------------------------------------------------- prefetch and the like


def prefetch(b: Builder, inst: PtxInst) -> None:
    if inst.has("tensormap"):
        from stages.lower.rules.bulk import prefetch_map

        prefetch_map(b, inst)
        return
    # .L1::32B.valid_addr: ptxas loads a byte to nowhere; the line of the plain prefetch is around those 32 bytes.
    level = {"L1": "PF1", "L1::32B": "PF1", "L2": "PF2", "L2::evict_last": "PML2", "L2::evict_normal": "PF2"}
    what = next((level[m] for m in inst.mods if m in level), None)
    if what is None or any(m.split("::")[0] in ("const", "param") for m in inst.mods):
        raise b.unsupported(inst)
    if inst.has("local"):
        where = resolve(b, inst, inst.operands[0])
        assert isinstance(where.at, Mem)
        b.emit(f"CCTLL.{what}", (), (where.at,))
        return
    _cctl(b, inst, what)


def discard(b: Builder, inst: PtxInst) -> None:
    if inst.has("bulk"):
        from stages.lower.rules.bulk import bulk

        bulk(b, inst)
        return
    _cctl(b, inst, "RML2" if inst.op == "discard" else "DML2")


def _cctl(b: Builder, inst: PtxInst, what: str) -> None:
    where = resolve(b, inst, inst.operands[0])
    if not isinstance(where.at, Mem):
        raise b.unsupported(inst)
    b.emit(f"CCTL.E.{what}", (), (where.at._replace(desc=None),))


# --------------------------------------------------------------------------- mov, cvta, isspacep


def mov(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    to, x = inst.operands[0], inst.operands[1]
    if isinstance(to, ptx.Vec):
        if isinstance(x, ptx.Vec):
            _move_all(b, inst, to, x, t)
        else:
            _unpack(b, inst, to, x, t)
        return
    d = b.dst(to, t)
    if isinstance(x, ptx.Vec):
        _pack(b, inst, d, x, t)
        return
    if isinstance(x, ptx.SReg):
        b.copy(d, b.ctx.special(b, x.name, t))
        return
    v = b.src(x, t)
    if d.file == "R" and type(v) is Reg and v.width > d.width:
        v = b.lo(v)
    b.copy(d, v)


def _move_all(b: Builder, inst: PtxInst, to: ptx.Vec, x: ptx.Vec, t: str) -> None:
    """mov of vectors: element by element, with the effect of a parallel copy."""
    if len(to.elems) != len(x.elems):
        raise b.unsupported(inst)
    held = []
    for e in x.elems:
        v = b.r(b.words(t))
        b.copy(v, b.src(e, t))
        held.append(v)
    for e, v in zip(to.elems, held, strict=True):
        if not isinstance(e, ptx.Sink):
            b.copy(b.dst(e, t), v)


def _pack(b: Builder, inst: PtxInst, d: Reg, x: ptx.Vec, t: str) -> None:
    each = b.bits(t) // len(x.elems)
    if each >= 32:
        k = each // 32
        for i, e in enumerate(x.elems):
            v = b.src(e, f"b{each}")
            for j in range(k):
                b.copy(d._replace(sub=d.sub + i * k + j, width=1), b.word(v, j))
        return
    if each < 8:
        raise b.unsupported(inst)
    whole = gather(b, x.elems, f"b{each}") if b.bits(t) >= 32 else None
    if whole is None:  # 16 bits of two bytes
        parts = [b.in_reg(b.src(e, "b8")) for e in x.elems]
        b.emit("PRMT", d, (parts[0], Imm("I", 0x0040), parts[1]))
    else:
        b.copy(d, whole)


def _unpack(b: Builder, inst: PtxInst, to: ptx.Vec, x: ptx.Operand, t: str) -> None:
    each = b.bits(t) // len(to.elems)
    if each < 8:
        raise b.unsupported(inst)
    v = b.in_reg(b.src(x, t), max(1, b.bits(t) // 32))
    names = {e.index for e in to.elems if isinstance(e, ptx.Reg)}
    if isinstance(x, ptx.Reg) and x.index in names:
        keep = b.r(v.width)
        b.copy(keep, v)
        v = keep
    for i, e in enumerate(to.elems):
        put(b, e, v, each // 8 * i, f"b{each}")


def cvta(b: Builder, inst: PtxInst) -> None:
    """cvta.space and cvta.to.space."""
    d = b.dst(inst.operands[0], "b64")
    if d.width != 2:
        raise b.unsupported(inst)
    space = next(
        (m.split("::")[0] for m in inst.mods if m.split("::")[0] in ("global", "shared", "local", "const", "param")), ""
    )
    x = inst.operands[1]
    if isinstance(x, ptx.Addr):
        x = ptx.Sym(x.base.name, x.offset + x.base.offset) if isinstance(x.base, ptx.Sym) else x.base
    if space == "param" and isinstance(x, ptx.Sym) and x.name in b.local_offset:
        space = "local"
    v = b.src(x, "b64")
    b.copy(d, from_generic(b, space, v) if inst.has("to") else to_generic(b, space, v))


_QSPC = {"global": "G", "shared": "S", "local": "L"}


def isspacep(b: Builder, inst: PtxInst) -> None:
    """Whether a generic address lies in a space: QSPC; the const window by comparison (64 KiB from its base)."""
    p = b.dst(inst.operands[0], "pred")
    x = b.in_reg(b.src(inst.operands[1], "u64"), 2)
    m = next((m for m in inst.mods if m.split("::")[0] in ("global", "shared", "local", "const", "param")), "")
    space, _, sub = m.partition("::")
    if sub == "cluster":
        b.emit("QSPC.E.D", (p, RZ), (Mem("M", x, None, 0),))
        return
    if space == "param":
        low, high = param_bounds(b)
        from_, _ = compare(b, "GE", "u64", x, low)
        compare_into(b, p, PT, "LE", "u64", x, high, "AND", from_)
        return
    if space == "const" or space == "global":
        from stages.lower.rules.integer import add64
        from stages.lower.spaces import window

        base = window(b, "const")
        assert base is not None
        end = b.r(2)
        add64(b, end, base, Imm("I", 0x10000))
        above, _ = compare(b, "GE", "u64", x, base)
        if space == "const":
            compare_into(b, p, PT, "LT", "u64", x, end, "AND", above)
            return
        const, _ = compare(b, "LT", "u64", x, end, "AND", above)
        g = b.p()
        b.emit("QSPC.E.G", (g, RZ), (Mem("M", x, None, 0),))
        b.emit("PLOP3.LUT", (p, PT), (g, const, PT, Imm("I", 0x30), Imm("I", 0)))
        return
    b.emit(f"QSPC.E.{_QSPC[space]}", (p, RZ), (Mem("M", x, None, 0),))


# --------------------------------------------------------------------------- cvt between integers

_INT = frozenset(f"{k}{n}" for k in "us" for n in (8, 16, 32, 64))


def cvt(b: Builder, inst: PtxInst) -> None:
    """Integer to integer: extend or truncate, .sat clamps to the destination type."""
    if inst.has("pack"):
        cvt_pack(b, inst)
        return
    if len(inst.types) != 2 or inst.types[0] not in _INT or inst.types[1] not in _INT:
        raise b.unsupported(inst)
    dt, st_ = inst.types
    d = b.dst(inst.operands[0], dt)
    x = b.src(inst.operands[1], st_)
    if inst.has("sat"):
        x = clamp(b, x, st_, dt)
        st_ = dt if b.bits(dt) <= b.bits(st_) else st_
    extend_to(b, d, x, st_ if b.bits(st_) < b.bits(dt) else dt)


def cvt_pack(b: Builder, inst: PtxInst) -> None:
    """cvt.pack.sat.ctype.s32[.b32]: clamp two values, pack them low; the third operand moves up after them."""
    t = inst.types[0]
    if t in ("s2", "u2", "s4", "u4") and inst.has("sat") and inst.types[1] == "s32" and len(inst.operands) == 4:
        _pack_few(b, inst, t)
        return
    n = b.bits(t)
    if n not in (8, 16) or not inst.has("sat") or inst.types[1] != "s32":
        raise b.unsupported(inst)
    parts = [b.in_reg(clamp(b, b.src(o, "s32"), "s32", t)) for o in inst.operands[1:3]]
    d = b.dst(inst.operands[0])
    if n == 16:
        b.emit("PRMT", d, (parts[1], Imm("I", 0x5410), parts[0]))
        return
    two = b.r()
    b.emit("PRMT", two, (parts[1], Imm("I", 0x0040), parts[0]))
    c = b.in_reg(b.src(inst.operands[3], "b32")) if len(inst.operands) > 3 else RZ
    b.emit("PRMT", d, (two, Imm("I", 0x5410), c))


def _pack_few(b: Builder, inst: PtxInst, t: str) -> None:
    """Two or four bits of each."""
    n = int(t[1:])
    low, high = (-(1 << n - 1), (1 << n - 1) - 1) if is_signed(t) else (0, (1 << n) - 1)
    word = b.in_reg(b.src(inst.operands[3], "b32"))
    for x in inst.operands[1:3]:
        v: Reg = b.in_reg(b.src(x, "s32"))
        for limit, up in ((high, False), (low, True)):
            d = b.r()
            minmax(b, d, "s32", v, Imm("I", limit & 0xFFFFFFFF), up)
            v = d
        moved, part, joined = b.r(), b.r(), b.r()
        b.emit("SHF.L.U32", moved, (word, Imm("I", n), RZ))
        logic(b, part, 0xC0, v, Imm("I", (1 << n) - 1))
        logic(b, joined, 0xFC, moved, part)
        word = joined
    b.copy(b.dst(inst.operands[0]), word)


def extend_to(b: Builder, d: Reg, x: Val, t: str) -> None:
    """d = x as a value of type ``t``, extended to the whole register."""
    v = b.ext(b.lo(x) if b.bits(t) <= 32 else x, t)
    if b.bits(t) <= 32:
        b.copy(b.lo_r(d), v)
        for i in range(1, d.width):
            fill_high(b, d, i, is_signed(t))
    else:
        b.copy(d, v)


def clamp(b: Builder, x: Val, st_: str, dt: str) -> Val:
    """x of type ``st_`` clamped to the range of ``dt`` (in the width of ``st_``)."""
    sn, dn = b.bits(st_), b.bits(dt)
    ss, ds = is_signed(st_), is_signed(dt)
    low, high = (-(1 << (dn - 1)), (1 << (dn - 1)) - 1) if ds else (0, (1 << dn) - 1)
    slow, shigh = (-(1 << (sn - 1)), (1 << (sn - 1)) - 1) if ss else (0, (1 << sn) - 1)

    wide = sn == 64
    t = ("s" if ss else "u") + ("64" if wide else "32")
    mask = (1 << (64 if wide else 32)) - 1
    v: Val = b.ext(x, st_)
    if low > slow:
        r = b.r(2 if wide else 1)
        minmax(b, r, t, v, Imm("I", low & mask), True)
        v = r
    if high < shigh:
        r = b.r(2 if wide else 1)
        minmax(b, r, t, v, Imm("I", high & mask), False)
        v = r
    return v


_KIND_BITS = {"samplerref": 0x40000000, "texref": 0x20000000, "surfref": 0x80000000}


def istypep(b: Builder, inst: PtxInst) -> None:
    """istypep: the kind of a handle is a bit of its upper word (measured)."""
    bit = next(_KIND_BITS[m] for m in inst.mods if m in _KIND_BITS)
    x = b.in_reg(b.src(inst.operands[1], "b64"), 2)
    b.emit("LOP3.LUT", (b.dst(inst.operands[0], "pred"), RZ), (b.word(x, 1), Imm("I", bit), RZ, Imm("I", 0xC0)))


RULES: dict[str, Rule] = {
    "istypep": istypep,
    "ld": ld, "ldu": ld, "st": st, "prefetch": prefetch, "prefetchu": prefetch, "discard": discard,
    "applypriority": discard,
    "mov": mov, "cvta": cvta, "isspacep": isspacep, "cvt": cvt,
}  # fmt: skip
