"""Copies to and from other devices through a fabric (PTX 9.3). Measured with ptxas 13.5 on sm_100a and sm_107a.

A handle is an endpoint and an offset: the endpoint's window begins at (0x80000 + endpoint) << 42 of the address space
(measured: the upper word is 0x200000 + (endpoint << 10)), and bulk copies reach it like global memory. A copy to the
fabric brings its bytes to the barrier itself, in units of 16, before it begins, as in ptxas's code. On SMs without
these copies ptxas's code traps.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import PT, RZ, URZ, Imm, Mem, Name, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.memory import fence
from stages.lower.rules.bulk import REDUCTIONS, bulk_class, each_thread, pack16, shared_word
from stages.lower.rules.integer import Val, add32, add64, compare, pair
from stages.lower.rules.multimem import pulled
from stages.lower.uniform_operands import Uniform

_WINDOW: Final = 0x200000
_TYPES: Final = {
    "u32": "", "b32": "", "s32": ".S32", "u64": ".U64", "b64": ".U64", "s64": ".S64", "f16": ".F16.RN",
    "bf16": ".BF16.RN", "f32": ".F32.RN", "f64": ".F64.RN",
}  # fmt: skip
_ORDER: Final = ".STRONG.SYS"


def handle(b: Builder, inst: PtxInst, x: ptx.Operand) -> list[Reg]:
    """The address of a handle's data, and that of its counter if it has one."""
    if not isinstance(x, ptx.Bracket) or not isinstance(x.parts[0], ptx.Addr):
        raise b.unsupported(inst, "address")
    base = x.parts[0].base
    if isinstance(base, ptx.Sym):
        raise b.unsupported(inst, "address")
    high = b.r()
    b.emit("LEA", high, (b.in_reg(b.src(base, "u32")), b.in_reg(Imm("I", _WINDOW)), Imm("I", 10)))
    window = pair(b, b.in_reg(Imm("I", 0)), high)
    out = []
    for part in x.parts[1:]:
        d = b.r(2)
        add64(b, d, b.in_reg(b.src(part, "u64"), 2), window)
        out.append(d)
    return out


def _units(b: Builder, x: ptx.Operand) -> Val:
    """A size in units of 16 bytes."""
    n = b.src(x, "u32")
    if type(n) is Imm:
        return Imm("I", n.value >> 4 & 0x0FFFFFFF)
    d = b.r()
    b.emit("SHF.R.U32.HI", d, (RZ, Imm("I", 4), b.in_reg(n)))
    return d


def _get(b: Builder, inst: PtxInst) -> None:
    low, bar = shared_word(b, inst, inst.operands[0]), shared_word(b, inst, inst.operands[3])
    (at,) = handle(b, inst, inst.operands[1])
    size = _units(b, inst.operands[2])
    hint = b.in_reg(b.src(inst.operands[4], "b64"), 2) if inst.has("L2::cache_hint") else None

    def make(u: Uniform) -> None:
        b.emit(f"UBLKCP.S.G{_ORDER}", (), (u.at([low, bar]), u.at_pair(at), u.block([size]), *u.policy(hint)))

    each_thread(b, make)


def _brought(b: Builder, bar: Reg, count: Val) -> None:
    """Bytes arrive at a barrier object."""
    b.emit("SYNCS.ARRIVE.TRANS64.RED.A0TX", RZ, (Mem("M", bar, URZ, 0), b.in_reg(count)))


def _put(b: Builder, inst: PtxInst) -> None:
    """try_put and try_red."""
    places = handle(b, inst, inst.operands[0])
    src, bar = shared_word(b, inst, inst.operands[1]), shared_word(b, inst, inst.operands[3])
    units = _units(b, inst.operands[2])
    rest = list(inst.operands[4:])
    size = pack16(b, units, b.src(rest.pop(0), "u16")) if inst.has("cp_mask") else units
    hint = b.in_reg(b.src(rest.pop(0), "b64"), 2) if inst.has("L2::cache_hint") else None
    how = ".COUNTED" if len(places) > 1 else ""
    if inst.has("try_red"):
        name = f"UBLKRED.G.S.{REDUCTIONS[next(m for m in inst.mods if m in REDUCTIONS)]}{how}{_TYPES[inst.types[0]]}"
    else:
        name = "UBLKCP.G.S" + (".DST_G_BYTE_MASK" if inst.has("cp_mask") else how)
    words: list[Val] = [b.word(place, i) for place in places for i in (0, 1)]
    _brought(b, bar, units)

    def make(u: Uniform) -> None:
        b.emit(f"{name}{_ORDER}", (), (u.at(words), u.at([src]), u.block([size]), *u.policy(hint)))

    each_thread(b, make)


def _pull(b: Builder, inst: PtxInst) -> None:
    """try_pullred: the whole warp loads reduced words and stores them; then one thread brings the bytes to the barrier.
    (ptxas unrolls the loop; the number of lanes must be 32, else its code traps.)"""
    (at,) = handle(b, inst, inst.operands[1])
    low, bar = shared_word(b, inst, inst.operands[0]), shared_word(b, inst, inst.operands[3])
    size = b.in_reg(b.src(inst.operands[2], "u32"))
    op, bits = pulled(b, inst)
    step = bits // 8
    with b.region():
        lane, first, place = b.r(), b.r(), b.r()
        b.emit("S2R", lane, (Name("N", "SR_LANEID"),))
        b.emit("IMAD", first, (lane, b.in_reg(Imm("I", step)), RZ))
        b.copy(place, first)
        again, end = b.new_block(), b.new_block()
        b.place(again)
        done, _ = compare(b, "GE", "u32", place, size)
        b.branch(end, done)
        where, to, data = b.r(2), b.r(), b.r(bits // 32)
        add64(b, where, at, pair(b, place, b.in_reg(Imm("I", 0))))
        b.emit(f"LDGMC.E.{op}{_ORDER}", data, (Mem("M", where, Reg("UR", -1, 0, 2), 0),))
        add32(b, to, low, place)
        b.emit("STS" + {32: "", 64: ".64", 128: ".128"}[bits], (), (Mem("M", to, None, 0), data))
        add32(b, place, place, Imm("I", 32 * step))
        b.branch(again)
        b.place(end)
        b.emit("WARPSYNC.ALL")
        one = b.p()
        b.emit("ELECT", (one, URZ), (PT,))
        fence(b, "ALL", "cta")
        b.emit("FENCE.VIEW.ASYNC.S")
        rest = b.new_block()
        b.branch(rest, b.not_(one))
        _brought(b, bar, size)
        b.place(rest)


def fabric(b: Builder, inst: PtxInst) -> None:
    """fabric.submit sends what was asked for, and fabric.wait orders reads, which wait anyway (as in ptxas's code)."""
    if inst.has("async"):
        bulk_class(b)
        if not b.has("fabric-copies"):
            with b.region():
                b.emit("BPT.TRAP", (), (Imm("I", 1),))
                b.place(b.new_block())
            return
        (_get if inst.has("try_get") else _pull if inst.has("try_pullred") else _put)(b, inst)
        return
    if inst.has("submit") and not inst.has("op_restrict::fetching"):
        with b.region():
            b.emit("UTMACMDFLUSH")
            b.emit("DEPBAR.LE", (), (Name("N", "SB0"), Imm("I", 0)))


RULES: dict[str, Rule] = {"fabric": fabric}
