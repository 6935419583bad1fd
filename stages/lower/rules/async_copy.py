"""mbarrier, cluster addresses, cache policies. Sequences measured with ptxas 13.0.88 on sm_80, sm_90 and sm_100.

On sm_80 to sm_89 an mbarrier is two words that ATOMS.ARRIVE counts down. From sm_90 on the SYNCS unit has its own
layout.
"""

from __future__ import annotations

from contextlib import nullcontext

from ir_format import ptx
from ir_format.model import RZ, URZ, Imm, Mem, Name, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder, Rule
from stages.lower.memory import Order, acquired, fence, resolve
from stages.lower.rules.bulk import each_thread, shared_word, wide_word
from stages.lower.rules.fabric import handle
from stages.lower.rules.integer import Val, add32, add64, logic, minmax, negated, pair
from stages.lower.rules.mbarriers import listed
from stages.lower.spaces import from_generic, shared_place
from stages.lower.waterfall import warp_uniform


def shared_address(b: Builder, inst: PtxInst, x: ptx.Operand) -> Mem:
    """``[R + imm]`` for an operand in the CTA's shared memory (a generic address is converted)."""
    if any(m.split("::")[0] == "shared" for m in inst.mods):
        if any(m == "shared::cluster" for m in inst.mods):
            raise b.unsupported(inst, "another CTA's shared memory")
        where = resolve(b, inst, x)
        if isinstance(where.at, Mem) and where.space == "shared":
            return where.at
        raise b.unsupported(inst, "address")
    if not isinstance(x, ptx.Addr):
        raise b.unsupported(inst, "address")
    if isinstance(x.base, ptx.Sym):
        if b.ctx.space_of(b, x) != "shared":
            return Mem("M", shared_word(b, inst, x), None, 0)
        base, at = shared_place(b, x.base.name, x.base.offset + x.offset)
        return Mem("M", base, None, at)
    low = b.in_reg(b.lo(from_generic(b, "shared", b.in_reg(b.src(x.base, "u64"), 2))))
    return Mem("M", low, None, x.offset)


def _barrier_address(b: Builder, inst: PtxInst, x: ptx.Operand) -> Mem:
    """The address of a barrier that may belong to another CTA (from sm_90 on a shared address includes its CTA)."""
    if not inst.has("shared::cluster"):
        return shared_address(b, inst, x)
    b.need(inst, "clusters")
    if not isinstance(x, ptx.Addr):
        raise b.unsupported(inst, "address")
    if isinstance(x.base, ptx.Sym):
        if b.ctx.space_of(b, x) != "shared":
            raise b.unsupported(inst, "address")
        base, at = shared_place(b, x.base.name, x.base.offset + x.offset)
        return Mem("M", base, None, at)
    return Mem("M", b.in_reg(b.lo(b.src(x.base, "u32"))), None, x.offset)


def _syncs(at: Mem) -> Mem:
    """The address form of SYNCS and ATOMS.ARRIVE: ``[R + URZ + imm]``."""
    return at._replace(base=at.base if at.base is not None else RZ, ubase=URZ)


def mbarrier(b: Builder, inst: PtxInst) -> None:
    """All mbarrier operations on the CTA's own barriers."""
    what = inst.mods[0] if inst.mods else ""
    rule = _OPS.get(what)
    if rule is None:
        raise b.unsupported(inst)
    b.need(inst, "mbarriers")
    with b.region() if what == "init" else nullcontext():  # from sm_100 on the instruction has no guard
        rule(b, inst)


def _init(b: Builder, inst: PtxInst) -> None:
    """The counts as the hardware keeps them. Bit 0 gives the layout; that of PTX 9.3 has smaller counts on sm_107
    (measured on 13.5)."""
    at = shared_address(b, inst, inst.operands[0])
    n = b.src(inst.operands[1], "u32")
    if not b.has("sync-unit"):
        lo, hi = b.r(), b.r()
        for d, start in ((lo, 0x40000000), (hi, 0x80000000)):
            b.emit("IADD3", d, (negated(b.in_reg(n)), Imm("I", start), RZ))
        b.emit("STS.64", (), (at, pair(b, lo, hi)), attrs={**listed("init"), "strong": 1})
        return
    left, lo, hi = b.r(), b.r(), b.r()
    second = inst.has("layout::v1")
    most, shift = (0x200, 4) if second and b.has("barrier-layout-1") else (0x100000, 1)
    b.emit("IADD3", left, (negated(b.in_reg(n)), Imm("I", most), RZ))
    b.emit("SHF.L.U32", hi, (left, Imm("I", 11), RZ))
    b.emit("SHF.L.U32", lo, (left, Imm("I", shift), RZ))
    if second:
        low = b.r()
        logic(b, low, 0xFC, lo, Imm("I", 1))
        lo = low
    word = b.r()
    b.emit("IADD3", word, (at.base if at.base is not None else RZ, Imm("I", at.offset & 0xFFFFFFFF), RZ))

    def exchange(where: Reg, value: Reg) -> None:
        name = "USYNCS.EXCH.64" if b.has("sync-uniform-named") else "SYNCS.EXCH.64"
        b.emit(name, URZ._replace(width=2), (Mem("M", None, where, 0), value), attrs=listed("init"))

    if warp_uniform(b, inst.operands[0]):
        where, value = b.ur(), b.ur(2)
        b.emit("R2UR", where, (word,))
        b.emit("R2UR", value._replace(width=1), (lo,))
        b.emit("R2UR", value._replace(sub=1, width=1), (hi,))
        exchange(where, value)
    else:  # the address and the word of one thread after the other
        each_thread(b, lambda u: exchange(u.block([word]), u.block([lo, hi])))


def _check_layout(b: Builder, inst: PtxInst) -> None:
    """Whether a barrier has a layout: bit 0 of its word."""
    p = b.dst(inst.operands[0], "pred")
    at = shared_address(b, inst, inst.operands[1])
    got = b.r(2)
    b.emit("SYNCS.LD.64", got, (_syncs(at),))
    b.emit("LOP3.LUT", (p, RZ), (b.lo_r(got), Imm("I", 1), RZ, Imm("I", 0xC0 if inst.has("layout::v1") else 0x0C)))


def _inval(b: Builder, inst: PtxInst) -> None:
    at = shared_address(b, inst, inst.operands[0])
    if b.has("sync-unit"):
        b.emit("SYNCS.CCTL.IV", (), (_syncs(at),), attrs=listed("inval"))
    else:  # no code, but debuggers need the place
        b.emit(
            "NOP",
            uses=() if at.base is None else (at.base,),
            attrs={**listed("inval"), "offset": at.offset, "fence": 1},
        )


def _arrive(b: Builder, inst: PtxInst) -> None:
    drop = inst.has("arrive_drop")
    tx = inst.has("expect_tx")
    to = inst.operands[0]
    state = Reg("R", -1, 0, 2) if isinstance(to, ptx.Sink) else b.dst(to, "b64")
    at = _barrier_address(b, inst, inst.operands[1])
    count = b.src(inst.operands[2], "u32") if len(inst.operands) > 2 else None
    if not b.has("sync-unit"):
        if tx or (count is not None) != inst.has("noComplete"):
            raise b.unsupported(inst)
        b.emit("MEMBAR.ALL.CTA")
        if count is not None:
            _arrive_by_addition(b, state, at, b.in_reg(count), drop)
            return
        if drop:
            b.emit("ATOMS.POPC.INC.32", RZ, (_syncs(at),))
        b.emit("ATOMS.ARRIVE.64", state, (_syncs(at),), attrs=listed("arrive_drop" if drop else "arrive"))
        return
    if any(m in ("cluster", "gpu", "sys") for m in inst.mods) and not inst.has("relaxed"):
        fence(b, "ALL", "gpu")
    how = "" if tx else ".A1T0" if count is None else ".ART0"
    if inst.has("noComplete"):
        _arrive_masked(b, state, at, b.in_reg(count) if count is not None else RZ, drop)
        return
    remote = ".RED" if inst.has("shared::cluster") else ""  # no state is returned
    b.emit(
        f"SYNCS.ARRIVE.TRANS64{remote}{'.OPTOUT' if drop else ''}{how}",
        RZ if remote else state,
        (_syncs(at), RZ if count is None else b.in_reg(count)),
        attrs=None if tx else listed("arrive_drop" if drop else "arrive"),  # (measured)
    )


def _arrive_by_addition(b: Builder, state: Reg, at: Mem, count: Reg, drop: bool) -> None:
    """noComplete on sm_80 to sm_89: add the count to the upper word. The state is the old value of this word, in both
    words. (In ptxas's code one lane adds for a full warp.)"""
    if drop:
        b.emit("ATOMS.ADD", RZ, (at, count))
    old = b.r()
    b.emit(
        "ATOMS.ADD",
        old,
        (at._replace(offset=at.offset + 4), count),
        attrs=listed("arrive_drop.noComplete" if drop else "arrive.noComplete"),
    )
    if state.num >= 0:
        b.copy(b.lo_r(state), old)
        b.copy(b.hi_r(state), old)


def _arrive_masked(b: Builder, state: Reg, at: Mem, count: Reg, drop: bool) -> None:
    """noComplete: the instruction returns the state before the arrivals of the warp, and the mask of its threads. Each
    thread adds the arrivals of the threads below it."""
    got, below, n, steps = b.r(2), b.r(), b.r(), b.r()
    b.emit(
        f"SYNCS.ARRIVE.TRANS64.TMASK{'.OPTOUT' if drop else ''}.ART0",
        got,
        (_syncs(at), count),
        attrs={**listed("arrive_drop.noComplete" if drop else "arrive.noComplete"), "operand": 1},
        uses=(count,),
    )
    lt, both = b.r(), b.r()
    b.emit("S2R", lt, (Name("N", "SR_LTMASK"),))
    logic(b, both, 0xC0, b.lo_r(got), lt)
    b.emit("POPC", below, (both,))
    b.emit("SHF.L.U32", n, (below, Imm("I", 11), RZ))
    b.emit("IMAD", steps, (n, count, b.hi_r(got)))
    b.copy(b.lo_r(state), b.lo_r(got))
    b.copy(b.hi_r(state), steps)


def _tx(b: Builder, inst: PtxInst) -> None:
    b.need(inst, "mbarrier-transactions")
    at = _barrier_address(b, inst, inst.operands[0])
    how = "A0TR" if inst.has("expect_tx") else "A0TX"
    count = b.in_reg(b.src(inst.operands[1], "u32"))
    b.emit(
        f"SYNCS.ARRIVE.TRANS64.RED.{how}",
        RZ,
        (_syncs(at), count),
        attrs=listed("expect_tx" if inst.has("expect_tx") else "complete_tx"),
    )


def _wait(b: Builder, inst: PtxInst) -> None:
    """test_wait and try_wait. A time hint is accepted and not used: it only bounds the wait."""
    p = b.dst(inst.operands[0], "pred")
    at = shared_address(b, inst, inst.operands[1])
    if inst.has("parity"):
        phase = b.r()
        b.emit("SHF.L.U32", phase, (b.in_reg(b.src(inst.operands[2], "u32")), Imm("I", 31), RZ))
    else:
        phase = b.in_reg(b.hi(b.src(inst.operands[2], "b64")))
    what = listed(("try_wait" if inst.has("try_wait") else "test_wait") + (".parity" if inst.has("parity") else ""))
    q = b.p()
    conditional = ".CONDITIONAL" if inst.has("phase_type::conditional") and b.has("barrier-layout-1") else ""
    if not b.has("sync-unit"):
        if inst.has("try_wait"):
            raise b.unsupported(inst)
        w = b.r()
        known = b.src(inst.operands[2], "u32" if inst.has("parity") else "b64")
        what = {**what, "operand": 2, "strong": 1}  # read again each time: loops wait for it to change
        if type(known) is Imm:
            b.emit(
                "LDS",
                w,
                (at._replace(offset=at.offset + 4),),
                attrs={**what, "operand_value": known.value & 0xFFFFFFFF},
            )
        else:
            b.emit("LDS", w, (at._replace(offset=at.offset + 4),), attrs=what, uses=(phase,))
        if not inst.has("relaxed"):
            acquired(b, Order("acquire", "cta"), (w,))
        b.emit("LOP3.LUT", (q, RZ), (w, Imm("I", 0x80000000), phase, Imm("I", 0x48)))
    else:
        b.emit(
            "SYNCS.PHASECHK.TRANS64" + (".TRYWAIT" if inst.has("try_wait") else "") + conditional,
            q,
            (_syncs(at), phase),
            attrs=what,
        )
    if any(m in ("cluster", "gpu", "sys") for m in inst.mods) and not inst.has("relaxed"):
        b.emit("CCTL.IVALL", (), (), q)
    b.emit("PCOPY", p, (q,))


def _pending(b: Builder, inst: PtxInst) -> None:
    hi = b.in_reg(b.hi(b.src(inst.operands[1], "b64")))
    d = b.dst(inst.operands[0])
    t = b.r()
    if not b.has("sync-unit"):
        logic(b, t, 0xC0, hi, Imm("I", 0x7FFFFFFF))
        b.emit("IADD3", d, (negated(t), Imm("I", 0x80000000), RZ))
    else:
        u = b.r()
        b.emit("SHF.R.U32.HI", u, (RZ, Imm("I", 11), hi))
        logic(b, t, 0xC0, u, Imm("I", 0xFFFFF))
        b.emit("IADD3", d, (negated(t), Imm("I", 0x100000), RZ))


_OPS: dict[str, Rule] = {
    "init": _init, "inval": _inval, "arrive": _arrive, "arrive_drop": _arrive, "expect_tx": _tx, "complete_tx": _tx,
    "test_wait": _wait, "check_layout": _check_layout,
    "try_wait": _wait, "pending_count": _pending,
}  # fmt: skip


# --------------------------------------------------------------------------- clusters


def _local_address(b: Builder, x: ptx.Operand, t: str) -> Val:
    if isinstance(x, ptx.Addr):
        x = ptx.Sym(x.base.name, x.base.offset + x.offset) if isinstance(x.base, ptx.Sym) else x.base
    v = b.src(x, t)
    return b.lo(v) if t == "u32" else v


def mapa(b: Builder, inst: PtxInst) -> None:
    """The same shared variable in another CTA of the cluster: its rank in the top byte of the window address."""
    b.need(inst, "clusters")
    t = inst.types[0]
    d = b.dst(inst.operands[0], t)
    x = _local_address(b, inst.operands[1], t)
    rank = b.in_reg(b.src(inst.operands[2], "u32"))
    lo = b.r()
    b.emit("PRMT", lo, (rank, Imm("I", 0x0654), b.in_reg(b.lo(x))))
    if d.width == 2:
        b.copy(b.hi_r(d), b.hi(x))
    b.copy(b.lo_r(d), lo)


def getctarank(b: Builder, inst: PtxInst) -> None:
    b.need(inst, "clusters")
    x = _local_address(b, inst.operands[1], inst.types[0])
    b.emit("SHF.R.U32.HI", b.dst(inst.operands[0]), (RZ, Imm("I", 24), b.in_reg(b.lo(x))))


# --------------------------------------------------------------------------- cache policies

# High word of a policy: 0x1 in bits 28.., then priorities; the fraction is four bits at 20.
_PRIMARY = {"L2::evict_last": 0x140, "L2::evict_first": 0x120, "L2::evict_normal": 0x160, "L2::evict_unchanged": 0x100}
_SECOND = {"L2::evict_unchanged": 0, "L2::evict_first": 0x10}
_RANGE = 0x80
_FRACTION = 0x417FD70A  # 15.99f: one in fifteen parts


def createpolicy(b: Builder, inst: PtxInst) -> None:
    """createpolicy: a fraction of the lines, the lines of a range, or the conversion of a policy."""
    b.need(inst, "cache-policies")
    d = b.dst(inst.operands[0], "b64")
    if inst.has("cvt"):
        b.copy(d, b.src(inst.operands[1], "b64"))
        return
    hints = [m for m in inst.mods if m.startswith("L2::")]
    base = _PRIMARY.get(hints[0]) if hints else None
    second = _SECOND.get(hints[1]) if len(hints) > 1 else 0
    if base is None or second is None:
        raise b.unsupported(inst)
    if inst.has("range"):
        _range(b, inst, d, base | second | _RANGE)
        return
    base |= second
    x = inst.operands[1] if len(inst.operands) > 1 else ptx.ImmF32(0x3F800000)
    if isinstance(x, ptx.ImmF32):
        from struct import pack, unpack

        fraction = unpack("<f", pack("<I", x.bits))[0]
        if not 0.0 < fraction <= 1.0:
            raise b.unsupported(inst, "fraction out of range")
        b.copy(d, Imm("I", (base | int(fraction * 15.99)) << 52))
        return
    scaled, parts, nibble, hi = b.r(), b.r(), b.r(), b.r()
    b.emit("FMUL", scaled, (b.in_reg(b.src(x, "f32")), Imm("I", _FRACTION)))
    b.emit("F2I.U32.TRUNC.NTZ", parts, (scaled,))
    logic(b, nibble, 0xC0, parts, Imm("I", 15))
    b.emit("SHF.L.U32", hi, (nibble, Imm("I", 20), RZ))
    b.copy(b.lo_r(d), Imm("I", 0))
    logic(b, b.hi_r(d), 0xFC, hi, Imm("I", base << 20))


def _range(b: Builder, inst: PtxInst, d: Reg, base: int) -> None:
    """The window in units of 2**k bytes, k = max(ceil(log2(size)) - 7, 12): its first unit and the number of units with
    the first priority, seven bits each."""
    first = handle(b, inst, inst.operands[1])[0] if inst.has("fabric") else wide_word(b, inst, inst.operands[1])
    primary, size = (b.in_reg(b.src(x, "u32")) for x in inst.operands[2:4])
    less, top, log, k = b.r(), b.r(), b.r(), b.r()
    add32(b, less, size, Imm("I", 0xFFFFFFFF))
    b.emit("FLO.U32", top, (less,))  # -1 where nothing is set: size 1
    add32(b, log, top, Imm("I", (1 - 7) & 0xFFFFFFFF))
    minmax(b, k, "s32", log, Imm("I", 12), True)
    unit, last = b.r(), b.r()
    b.emit("SHF.L.U32", unit, (b.in_reg(Imm("I", 1)), k, RZ))
    b.emit("IADD3", last, (primary, Imm("I", 0xFFFFFFFF), unit))
    end = b.r(2)
    add64(b, end, first, pair(b, last, RZ))
    begin, stop = b.r(), b.r()
    b.emit("SHF.R.U64", begin, (b.word(first, 0), k, b.word(first, 1)))
    b.emit("SHF.R.U64", stop, (b.word(end, 0), k, b.word(end, 1)))
    count, few, low = b.r(), b.r(), b.r()
    b.emit("IADD3", count, (stop, negated(begin), RZ))
    minmax(b, few, "u32", count, Imm("I", 0x7F), False)
    logic(b, low, 0xC0, begin, Imm("I", 0x7F))
    word = b.r()
    add32(b, word, k, Imm("I", base - 12 & 0xFFFFFFFF))
    for shift, part in ((8, low), (7, few)):
        moved, joined = b.r(), b.r()
        b.emit("SHF.L.U32", moved, (word, Imm("I", shift), RZ))
        logic(b, joined, 0xFC, moved, part)
        word = joined
    b.emit("SHF.L.U32", b.hi_r(d), (word, Imm("I", 5), RZ))
    b.copy(b.lo_r(d), Imm("I", 0))


RULES: dict[str, Rule] = {"mbarrier": mbarrier, "mapa": mapa, "getctarank": getctarank, "createpolicy": createpolicy}
