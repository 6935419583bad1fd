"""Results of guarded vector instructions without guarded copies.

    UNDEF t; @P LDG t <- [..]; @P COPY a <- t[0]; @P COPY b <- t[1]
becomes
    COPY t[0] <- a; COPY t[1] <- b; @P LDG t <- [..]; COPY a <- t[0]; COPY b <- t[1]

The registers a, b live on where P is false, so they could never share t's; now t holds their values first, and the
allocator puts all into one place.

Pre: a function at level `ori`, as lowering made it. Post: the same results.
"""

from __future__ import annotations

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.model import Block, Function, Inst, Reg
from stages.optimize.analyses import Analyses
from stages.plumbing.runner import Context


class _Vector:
    """A vector register between its UNDEF and its last copy."""

    __slots__ = ("copies", "guard", "undef")

    def __init__(self, undef: int) -> None:
        self.undef = undef
        self.guard: Reg | None = None
        self.copies: list[tuple[int, Reg, Reg]] = []  # index, destination, component


def place_guarded_vectors(f: Function, a: Analyses) -> None:
    """The pass."""
    _function(f, a.ctx)


def _function(f: Function, ctx: Context) -> None:
    wanted = {
        r.num
        for b in f.blocks
        for i in b.insts
        if i.op == "UNDEF"
        for r in written_regs(i)
        if r.file == "R" and r.width > 1
    }
    if not wanted:
        return
    found = [_vectors(f, b, wanted) for b in f.blocks]
    wanted = {t for vectors in found for t, _ in vectors}
    if not wanted:
        return
    reads: dict[int, int] = {}
    for b in f.blocks:
        for i in b.insts:
            for r in read_regs(i):
                if r.num in wanted:
                    reads[r.num] = reads.get(r.num, 0) + 1
    for b, vectors in zip(f.blocks, found, strict=True):
        firsts: dict[int, list[Inst]] = {}
        for t, v in vectors:
            if len(v.copies) == reads.get(t, 0) and ctx.allow():
                at = b.insts[v.undef]
                firsts[v.undef] = [
                    Inst("COPY", (), (part,), (old,), None, at.line, at.loc) for _, old, part in v.copies
                ]
                for n, _, _ in v.copies:
                    b.insts[n].guard = None
                ctx.count("guarded results in place")
        if firsts:
            b.insts = [x for n, i in enumerate(b.insts) for x in firsts.get(n, [i])]


def _vectors(f: Function, b: Block, wanted: set[int]) -> list[tuple[int, _Vector]]:
    """The vectors of a block whose result is copied out whole under the guard it was made under."""
    open_: dict[int, _Vector] = {}
    done: list[tuple[int, _Vector]] = []
    written_at: dict[int, int] = {}
    for n, i in enumerate(b.insts):
        if not open_ and i.op != "UNDEF":
            continue
        d = i.dsts[0] if i.dsts else None
        s = i.srcs[0] if i.srcs else None
        if i.op == "UNDEF" and type(d) is Reg and d.num in wanted:
            open_[d.num] = _Vector(n)
        elif i.op == "COPY" and type(s) is Reg and s.num in open_ and type(d) is Reg and d.width == s.width:
            v = open_[s.num]
            steady = (
                v.guard is not None
                and i.guard == v.guard
                and written_at.get(v.guard.num, -1) < v.undef
                and written_at.get(d.num, -1) < v.undef
            )
            if not steady or any(c[1].num == d.num and c[1].sub == d.sub or c[2].sub == s.sub for c in v.copies):
                del open_[s.num]
            else:
                v.copies.append((n, d, s))
                if sum(c[2].width for c in v.copies) == f.vregs[s.num].width:
                    done.append((s.num, open_.pop(s.num)))
        else:
            for r in written_regs(i):
                if r.num in open_ and i.op != "UNDEF":
                    v = open_[r.num]
                    if v.guard is None and is_guarded(i) and r.sub == 0 and r.width == f.vregs[r.num].width:
                        v.guard = i.guard
                    else:
                        del open_[r.num]
        for r in written_regs(i):
            written_at[r.num] = n
    return done
