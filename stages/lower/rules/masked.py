"""Warp-wide operations whose mask stands in a register: threads of several masks may come to them together, and each
mask is an operation of its own.

Hardware combines all threads that are there. Votes and matches give sets of threads, from which those of other masks
are taken out. REDUX gives one word for all: it is used where all have the same mask; else each thread goes through the
threads of its mask, which have the same number of rounds. (ptxas: the same arithmetic on sm_75, WARPSYNC.EXCLUSIVE from
sm_80 on.)
"""

from __future__ import annotations

from typing import TypedDict

from ir_format.model import NOT_PT, PT, RZ, AttrValue, Imm, Operand, Reg
from stages.lower.builder import Builder
from stages.lower.rules.integer import Val, compare, logic

_ZERO = Imm("I", 0)
_FULL = 0xFFFFFFFF


class Members(TypedDict):
    """What :meth:`Builder.emit` needs to know of the threads that a warp-wide instruction of the program is for."""

    attrs: dict[str, AttrValue]
    uses: tuple[Operand, ...]


def varies(mask: Val) -> bool:
    """Whether threads may come with other masks: not where it is written in the instruction."""
    return type(mask) is Reg


def ballot(b: Builder, p: Operand, mask: Val, who: Members) -> Reg:
    """The threads of the mask for which ``p`` is true."""
    all_, own = b.r(), b.r()
    b.emit("VOTE.ANY", (all_, PT), (p,), **who)
    logic(b, own, 0xC0, all_, mask)
    return own


def vote(b: Builder, kind: str, d: Reg, p: Reg, mask: Val, who: Members) -> None:
    """``d``: whether ``p`` is true in any (ANY), in all (ALL) threads of the mask, or the same in them (EQ)."""
    yes = ballot(b, p, mask, who) if kind != "ALL" else None
    no = ballot(b, b.not_(p), mask, who) if kind != "ANY" else None
    if kind == "EQ":
        assert yes is not None and no is not None
        one, both = b.p(), b.p()
        b.emit("ISETP.EQ.U32.AND", (one, PT), (yes, _ZERO, PT))
        b.emit("ISETP.EQ.U32.OR", (both, PT), (no, _ZERO, one))
        b.copy(d, both)
        return
    q, _ = compare(b, "NE" if kind == "ANY" else "EQ", "u32", yes if yes is not None else no or RZ, _ZERO)
    b.copy(d, q)


def match_all(b: Builder, d: Reg, p: Reg, x: Operand, mask: Val, wide: str, who: Members) -> None:
    """The threads of the mask and true where all of them have the same value, else 0 and false."""
    same, here, own = b.r(), b.r(), b.r()
    b.emit(f"MATCH.ANY{wide}", same, (x,), **who)
    b.emit("VOTE.ANY", (here, PT), (PT,), attrs={"coop": 0})
    logic(b, own, 0xC0, here, mask)
    v = b.r()
    logic(b, v, 0xC0, same, own)
    q, _ = compare(b, "EQ", "u32", v, own)
    b.select(d, own, _ZERO, q)
    b.copy(p, q)


def redux(
    b: Builder,
    name: str,
    op: str,
    type_: str,
    d: Reg,
    x: Reg,
    mask: Val,
    who: Members,
    *,
    absolute: bool = False,
    nan: bool = False,
) -> None:
    """``name``: the instruction that does it for all threads that are there; ``op`` and ``type_``: what it does."""
    with b.region():
        m, out = b.in_reg(mask), b.r()
        one, rest, end = b.p(), b.new_block(), b.new_block()
        b.emit("MATCH.ALL", (one, b.r()), (m,))
        b.branch(rest, b.not_(one))
        u = b.ur()
        b.emit(name, u, (x,), **who)
        b.copy(out, u)
        b.branch(end)
        b.place(rest)
        if absolute:
            y = b.r()
            logic(b, y, 0xC0, x, Imm("I", 0x7FFFFFFF))
            x = y
        left = b.r()
        b.copy(left, m)
        b.copy(out, _ZERO if op in ("add", "xor") else x)
        head = b.new_block()
        b.place(head)
        lane, value, bit, more = b.r(), b.r(), b.r(), b.p()
        b.emit("FLO.U32", (lane, PT), (left,))
        b.emit("SHFL.IDX", (PT, value), (x, lane, Imm("I", 0x1F)))
        _join(b, op, type_, out, value, nan)
        b.emit("SHF.L.U32", bit, (Imm("I", 1), lane, RZ))
        logic(b, left, 0x3C, left, bit)
        b.emit("ISETP.NE.U32.AND", (more, PT), (left, _ZERO, PT))
        b.branch(head, more)
        b.place(end)
        b.copy(d, out)


def _join(b: Builder, op: str, type_: str, out: Reg, value: Reg, nan: bool) -> None:
    """``out``, joined with ``value``."""
    if op == "add":
        b.emit("IADD3", (out, PT, PT), (out, value, RZ, NOT_PT, NOT_PT))
    elif op in ("and", "or", "xor"):
        logic(b, out, {"and": 0xC0, "or": 0xFC, "xor": 0x3C}[op], out, value)
    elif type_ == "f32":
        b.emit("FMNMX.NAN" if nan else "FMNMX", out, (out, value, PT if op == "min" else NOT_PT))
    else:
        q, _ = compare(b, "LT" if op == "min" else "GT", type_, value, out)
        b.select(out, value, out, q)
