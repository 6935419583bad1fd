"""Arguments and results in `.reg` space other than registers of at least 32 bits. A predicate is passed as a word, 0 or
1 (ptxas passes it in a predicate register; only programs without its ABI have such arguments, and no other code calls
them). A vector is passed in the layout that it has in memory (measured)."""

from __future__ import annotations

from collections.abc import Sequence

from ir_format import ptx
from ir_format.model import INV, PT, RZ, Imm, Reg
from ir_format.ptx import PtxParam
from stages.lower.builder import Builder
from stages.lower.elements import gather, put


def in_words(p: PtxParam) -> bool:
    """Whether the words of the parameter differ from the PTX register."""
    return p.space == "reg" and (p.type == "pred" or p.vec > 1)


def registers_of(p: PtxParam) -> ptx.Operand:
    """The PTX registers of a parameter of this function."""
    return ptx.Vec(tuple([ptx.Reg(p.reg + i) for i in range(p.vec)])) if p.vec > 1 else ptx.Reg(p.reg)


def to_words(b: Builder, x: ptx.Operand, p: PtxParam) -> Reg | Imm:
    """The words of an operand that is a predicate or a vector."""
    if isinstance(x, ptx.Vec):
        return gather(b, x.elems, p.type)
    v = b.src(x, "pred")
    assert isinstance(v, Reg)
    word = b.r()
    b.emit("SEL", word, (RZ, Imm("I", 1), v._replace(flags=v.flags ^ INV)))
    return word


def from_words(b: Builder, x: ptx.Operand, p: PtxParam, words: Sequence[Reg]) -> None:
    """Move the words into a predicate or a vector."""
    if isinstance(x, ptx.Vec):
        whole = b.r(sum([w.width for w in words]))
        at = 0
        for w in words:
            b.copy(whole._replace(sub=at, width=w.width), w)
            at += w.width
        step = b.bits(p.type) // 8
        for i, e in enumerate(x.elems):
            put(b, e, whole, i * step, p.type)
    elif isinstance(x, ptx.Reg):
        b.emit("ISETP.NE.U32.AND", (b.reg(x.index), PT), (words[0], RZ, PT))
