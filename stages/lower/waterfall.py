"""Operands that an instruction takes in uniform registers, which are one for a warp, where PTX has a value for each
thread: which PTX registers hold the same value in all threads, and the waterfall
loop over the values of the others.

ptxas loops too (measured on sm_80, 90, 100: `mbarrier.init` and `cp.async.mbarrier.arrive` at addresses that differ,
textures and surfaces whose handles do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ir_format import ptx
from ir_format.model import PT, URZ, Name, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder
from stages.lower.rules.integer import compare
from stages.lower.uniform_operands import Uniform

#: Instructions whose result depends on nothing but their sources.
_OF_SOURCES: Final = frozenset(
    ["mov", "add", "sub", "mul", "mad", "mul24", "mad24", "min", "max", "and", "or", "xor", "not", "neg", "abs", "shl",
     "shr", "shf", "prmt", "bfe", "bfi", "lop3", "cvt", "cvta", "mapa"]
)  # fmt: skip
#: Special registers that all threads of a warp read alike.
_OF_WARP: Final = frozenset(
    ["ctaid", "nctaid", "ntid", "gridid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
     "cluster_ctarank", "cluster_nctarank", "dynamic_smem_size", "total_smem_size", "aggr_smem_size"]
)  # fmt: skip


def definitions(body: Iterable[object]) -> dict[int, PtxInst | None]:
    """The PTX registers that instructions write, each with its only definition; None where there are several or that
    one has a guard."""
    found: dict[int, PtxInst | None] = {}
    for inst in body:
        if type(inst) is not PtxInst or not inst.operands or (inst.op in ("bar", "barrier") and not inst.has("red")):
            continue
        work = list(inst.operands if inst.op == "call" else inst.operands[:1])
        while work:
            x = work.pop()
            if type(x) is ptx.Vec:
                work += x.elems
            elif type(x) is ptx.Pair:
                work += (x.first, x.second)
            elif type(x) is ptx.CallTarget:
                work += x.rets
            elif type(x) is ptx.Part:
                found[x.reg.index] = None
            elif type(x) is ptx.Reg:
                found[x.index] = inst if x.index not in found and inst.guard is None else None
    return found


def warp_uniform(b: Builder, x: ptx.Operand, depth: int = 24) -> bool:
    """Whether an operand is seen to have one value in all threads of a warp: a constant, an address, a parameter of the
    kernel, or what is computed from such alone, in one place."""
    t = type(x)
    if t is ptx.Imm or t is ptx.Sym:
        return True
    if t is ptx.SReg:
        return x.name.lstrip("%").partition(".")[0] in _OF_WARP  # type: ignore[union-attr]
    if t is ptx.Addr:
        return warp_uniform(b, x.base, depth)  # type: ignore[union-attr]
    if t is not ptx.Reg or not depth:
        return False
    if b.definitions is None:
        b.definitions = definitions(b.pf.body)
    inst = b.definitions.get(x.index)  # type: ignore[union-attr]
    if inst is None:
        return False
    if inst.op == "ld":
        return (
            b.pf.entry and any(m in ("param", "param::entry") for m in inst.mods) and warp_uniform(b, inst.operands[1])
        )
    if inst.op not in _OF_SOURCES or inst.has("cc"):
        return False
    return all(warp_uniform(b, s, depth - 1) for s in inst.operands[1:])


def waterfall(b: Builder, words: list[Reg], make: Callable[[Reg, Reg], None]) -> None:
    """A loop in which the threads whose words are the same take their turn together: ``make`` gets the words in uniform
    registers and the predicate of these threads."""
    with b.region():
        again = b.new_block()
        b.place(again)
        to = Uniform(b, _one_thread(b)).block(list(words))
        p: Reg = PT
        for i, word in enumerate(words):
            p, _ = compare(b, "EQ", "u32", word, to._replace(sub=i, width=1), "AND", p)
        make(to, p)
        b.branch(again, b.not_(p))


def _one_thread(b: Builder) -> Reg:
    """A predicate that is true in one of the active threads."""
    if b.has("elect"):
        turn = b.p()
        b.emit("ELECT", (turn, URZ), (PT,))
        return turn
    active, last, lane = b.r(), b.r(), b.r()
    b.emit("VOTE.ANY", (active, Reg("P", -1)), (PT,))
    b.emit("FLO.U32", last, (active,))
    b.emit("S2R", lane, (Name("N", "SR_LANEID"),))
    turn, _ = compare(b, "EQ", "u32", last, lane)
    return turn
