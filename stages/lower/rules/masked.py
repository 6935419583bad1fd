"""Warp-wide operations with the mask in a register: threads with different masks may execute them converged, and each
mask is then an operation of its own.

The hardware combines all active threads. Votes and matches return sets of threads, from which the code removes threads
with other masks. REDUX returns one word for all threads, so it is used if all have the same mask. Otherwise each thread
loops over the threads of its mask; all threads of a mask need the same number of iterations. (ptxas uses the same
arithmetic on sm_75, and WARPSYNC.EXCLUSIVE from sm_80 on.)
"""

from __future__ import annotations

from ir_format.model import NOT_PT, PT, RZ, AttrValue, Imm, Operand, Reg
from ir_format.typed import TypedDict
from stages.lower.builder import Builder
from stages.lower.rules.integer import Val, compare, logic

_ZERO = Imm("I", 0)
_FULL = 0xFFFFFFFF


class Members(TypedDict):
    """The arguments of :meth:`Builder.emit` that describe the threads of a warp-wide instruction."""

    attrs: dict[str, AttrValue]
    uses: tuple[Operand, ...]


def varies(mask: Val) -> bool:
    """Whether threads may have different masks: not if the mask is an immediate."""
    return type(mask) is Reg


def ballot(b: Builder, p: Operand, mask: Val, who: Members) -> Reg:
    """The threads of the mask for which ``p`` is true."""
    all_, own = b.r(), b.r()
    b.emit("VOTE.ANY", (all_, PT), (p,), **who)
    logic(b, own, 0xC0, all_, mask)
    return own


def vote(b: Builder, kind: str, d: Reg, p: Reg, mask: Val, who: Members) -> None:
    """``d`` <- whether ``p`` is true in any (ANY) or all (ALL) threads of the mask, or equal in them (EQ)."""
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
    """If all threads of the mask have the same value, the mask and true, else 0 and false."""
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
    """``name`` is the instruction that combines all active threads; ``op`` and ``type_`` are its operation."""
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
    """``out`` <- ``out`` combined with ``value``."""
    if op == "add":
        b.emit("IADD3", (out, PT, PT), (out, value, RZ, NOT_PT, NOT_PT))
    elif op in ("and", "or", "xor"):
        logic(b, out, {"and": 0xC0, "or": 0xFC, "xor": 0x3C}[op], out, value)
    elif type_ == "f32":
        b.emit("FMNMX.NAN" if nan else "FMNMX", out, (out, value, PT if op == "min" else NOT_PT))
    else:
        q, _ = compare(b, "LT" if op == "min" else "GT", type_, value, out)
        b.select(out, value, out, q)
