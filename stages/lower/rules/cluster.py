"""Operations other than bulk copies that complete at an mbarrier: st.async, red.async, the arrival of cp.async copies,
and clusterlaunchcontrol.

Sequences measured with ptxas 13.0.88 on sm_80, sm_90a, sm_100a and sm_120a.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.diag import CompileError
from ir_format.model import RZ, URZ, Imm, Mem, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder, Rule
from stages.lower.rules.async_copy import shared_address
from stages.lower.rules.bulk import each_thread, shared_word
from stages.lower.rules.integer import add32, logic
from stages.lower.rules.mbarriers import listed
from stages.lower.uniform_operands import Uniform
from stages.lower.waterfall import warp_uniform, waterfall

_SIZES = {4: "", 8: ".64", 16: ".128"}
#: (operation, type) -> modifiers of REDAS.
_REDUCE = {
    **{(o, "u32"): o.upper() for o in ("add", "min", "max", "inc", "dec")},
    ("add", "s32"): "ADD", ("min", "s32"): "MIN.S32", ("max", "s32"): "MAX.S32", ("add", "u64"): "ADD.64",
    **{(o, "b32"): o.upper() for o in ("and", "or", "xor")},
}  # fmt: skip


def remote(inst: PtxInst) -> bool:
    """Whether an st.async or red.async goes to shared memory and arrives at a barrier (the other form goes to global
    memory)."""
    return len(inst.operands) == 3


def _where(b: Builder, inst: PtxInst) -> Mem:
    """``[R.64]``: the address and the barrier, both in the cluster's shared memory (generic addresses: the low words
    are the same)."""
    d = b.r(2)
    b.copy(b.lo_r(d), shared_word(b, inst, inst.operands[0]))
    b.copy(b.hi_r(d), shared_word(b, inst, inst.operands[2]))
    return Mem("M", d, URZ._replace(width=2), 0)


def store_async(b: Builder, inst: PtxInst) -> None:
    """st.async to shared memory of the cluster."""
    t = inst.types[0]
    x = inst.operands[1]
    elems = x.elems if isinstance(x, ptx.Vec) else (x,)
    n = b.words(t)
    data = b.r(n * len(elems))
    for i, e in enumerate(elems):
        b.copy(data._replace(sub=n * i, width=n), b.src(e, t))
    size = _SIZES.get(4 * data.width)
    if size is None:
        raise b.unsupported(inst)
    b.emit(f"STAS{size}", (), (_where(b, inst), data))


def reduce_async(b: Builder, inst: PtxInst) -> None:
    """red.async to shared memory of the cluster."""
    t = inst.types[0]
    op = next((_REDUCE[m, t] for m in inst.mods if (m, t) in _REDUCE), "")
    if not op:
        raise b.unsupported(inst)
    v = b.in_reg(b.src(inst.operands[1], t), b.words(t))
    b.emit(f"REDAS.{op}", (), (_where(b, inst), v))


def arrive_copies(b: Builder, inst: PtxInst) -> None:
    """cp.async.mbarrier.arrive: an arrival at the barrier when the thread's earlier copies are done. Without .noinc the
    barrier expects one more arrival."""
    b.need(inst, "async-copies")
    at = shared_address(b, inst, inst.operands[0])
    noinc = inst.has("noinc")
    low = b.r()
    add32(b, low, at.base if at.base is not None else RZ, Imm("I", at.offset & 0xFFFFFFFF))
    unit = b.has("sync-unit")
    if not unit and not noinc:
        b.emit("ATOMS.ADD", RZ, (Mem("M", low, None, 4), b.in_reg(Imm("I", 0xFFFFFFFF))))
    name = "ARRIVES.LDGSTSBAR.64" + (".ARVCNT" if unit and noinc else ".TRANSCNT" if unit else "")

    def arrive(u: Reg, who: Reg | None) -> None:
        if unit and not noinc:
            b.emit("SYNCS.ARRIVE.TRANS64.RED.A0T1", RZ, (Mem("M", RZ, u, 0), RZ), who)
        b.emit(name, (), (Mem("M", RZ, u, 0),), who, attrs=listed("cp.async"))

    if warp_uniform(b, inst.operands[0]):
        u = b.ur()
        b.emit("R2UR", u, (low,))
        arrive(u, None)
    else:
        waterfall(b, [low], arrive)


# --------------------------------------------------------------------------- clusterlaunchcontrol


def _try_cancel(b: Builder, inst: PtxInst) -> None:
    to, barrier = (shared_word(b, inst, x) for x in inst.operands[:2])
    name = "UGETNEXTWORKID." + ("BROADCAST" if inst.has("multicast::cluster::all") else "SELFCAST")

    def make(u: Uniform) -> None:
        # the two registers need not be neighbours for the encoding, which names one: measured pairs are
        pair = u.block([to, barrier])
        b.emit(name, (), (Mem("M", None, pair._replace(width=1), 0), Mem("M", None, pair._replace(sub=1, width=1), 0)))

    each_thread(b, make)


def _query(b: Builder, inst: PtxInst) -> None:
    """The response: word 0 is the x of the first CTA, word 1 its y and z in halves; bit 0 of word 2 tells whether there
    is one."""
    x = b.in_reg(b.src(inst.operands[1], "b128"), 4)
    what = inst.mods[1]
    if what == "is_canceled":
        p = b.dst(inst.operands[0], "pred")
        b.emit("LOP3.LUT", (p, RZ), (b.word(x, 2), Imm("I", 1), RZ, Imm("I", 0xC0)))
        return
    _, _, axis = what.partition("::")
    to = inst.operands[0]
    wanted: list[tuple[ptx.Operand, str]] = [(to, axis)]
    if not axis:
        wanted = list(zip(to.elems, "xyz", strict=False))  # type: ignore[union-attr]
    parts: list[tuple[Reg, Reg]] = []
    for d, a in wanted:
        v: Reg = b.r()
        if a == "x":
            b.copy(v, b.word(x, 0))
        elif a == "y":
            logic(b, v, 0xC0, b.word(x, 1), Imm("I", 0xFFFF))
        else:
            b.emit("SHF.R.U32.HI", v, (RZ, Imm("I", 16), b.word(x, 1)))
        parts.append((b.dst(d), v))
    for reg, v in parts:
        b.copy(reg, v)


def clusterlaunchcontrol(b: Builder, inst: PtxInst) -> None:
    """try_cancel, and the queries of its response."""
    b.need(inst, "cluster-launch-control")
    rule = {"try_cancel": _try_cancel, "query_cancel": _query}.get(inst.mods[0])
    if rule is None:
        raise CompileError(f"Instruction '{inst.opcode}' not supported by orias", inst.line)
    rule(b, inst)


RULES: dict[str, Rule] = {"clusterlaunchcontrol": clusterlaunchcontrol}
