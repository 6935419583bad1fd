"""What to read instead of a copy: the part of instruction combining that looks through COPY and MOV."""

from __future__ import annotations

from ir_format.model import ZERO, Const, Imm, Inst, Mem, Operand, Reg
from stages.optimize.values import FREE, Lane, Values, copied


class Copies:
    """The copies seen so far. ``found``: a lane of a value -> what to read instead; ``registers``: those in it."""

    __slots__ = ("found", "registers", "values")

    def __init__(self, values: Values) -> None:
        self.values = values
        self.found: dict[Lane, Operand] = {}
        self.registers: set[int] = set()

    def is_free(self, o: Operand) -> bool:
        """Whether the operand may be read wherever its definition dominates: a free value, RZ, an immediate, a
        constant-bank word."""
        if type(o) is Reg:
            return o.num == ZERO or self.values.value[o.num] == FREE
        if type(o) is Const:
            return o.ireg is None or self.is_free(o.ireg)
        return type(o) is Imm

    def remember(self, i: Inst) -> None:
        """Note that a copy's destination may be read through."""
        s = copied(i)
        if s is None:
            return
        d = i.dsts[0]
        if type(d) is not Reg or d.num == ZERO or not self.values.value[d.num] or not self.is_free(s):
            return
        lane = self.values.base[d.num] + d.sub
        if type(s) is Reg:
            if s.file != d.file or s.mod or (s.flags and d.file != "P"):
                return
            for c in range(d.width):
                self.registers.add(d.num)
                self.found[lane + c] = s if s.num == ZERO else Reg(s.file, s.num, s.sub + c, 1, s.flags, s.mod)
        elif (type(s) is Imm and d.width == 1 and not s.fmt) or (type(s) is Const and d.width == 1):
            self.registers.add(d.num)
            self.found[lane] = s
        elif type(s) is Const and d.width == 2 == s.width and s.ireg is None and not s.sym and not s.flags:
            self.registers.add(d.num)
            self.found[lane] = s._replace(width=1)
            self.found[lane + 1] = s._replace(width=1, offset=s.offset + 4)

    def reg(self, r: Reg) -> Operand:
        """What to read instead of a register operand (itself if nothing)."""
        if r.num not in self.registers:
            return r
        lane = self.values.base[r.num] + r.sub
        first = self.found.get(lane)
        if first is None:
            return r
        if r.width == 1:
            if type(first) is Reg:
                return Reg(first.file, first.num, first.sub, 1, _joined(first, r), r.mod)
            return first if not r.flags and not r.mod else r
        if type(first) is Const and r.width == 2:
            return self._const_pair(r, first)
        if type(first) is not Reg or first.flags:
            return r
        for c in range(1, r.width):
            got = self.found.get(lane + c)
            if first.num == ZERO:
                if got != first:
                    return r
            elif type(got) is not Reg or got.num != first.num or got.sub != first.sub + c or got.flags:
                return r
        if first.num != ZERO and first.sub % min(4, r.width if r.width != 3 else 4):
            return r
        return Reg(r.file, first.num, first.sub if first.num != ZERO else 0, r.width, r.flags, r.mod)

    def _const_pair(self, r: Reg, low: Const) -> Operand:
        """The pair of constant-bank words that a register pair is a copy of, or the pair itself."""
        high = self.found.get(self.values.base[r.num] + r.sub + 1)
        if (
            low.ireg is not None
            or low.sym
            or low.flags
            or low.offset % 8
            or r.mod
            or high != low._replace(offset=low.offset + 4)
        ):
            return r
        return low._replace(width=2, flags=r.flags)

    def operand(self, o: Operand) -> Operand:
        if type(o) is Reg:
            return self.reg(o)
        if type(o) is Mem:
            return self._address(o)
        if type(o) is Const and o.ireg is not None:
            new = self.reg(o.ireg)
            return o._replace(ireg=new) if type(new) is Reg and new.num != ZERO else o
        return o

    def _address(self, m: Mem) -> Mem:
        base = m.base
        if base is None or base.num == ZERO:
            return m
        new = self.reg(base)
        if new is base:
            return m
        if type(new) is Reg and not new.flags:
            return m._replace(base=new)
        if (
            type(new) is Imm
            and base.width == 1
            and not new.sym
            and not base.mod
            and m.ubase is None
            and new.value + m.offset < 1 << 23
        ):
            return m._replace(base=base._replace(num=ZERO, sub=0), offset=m.offset + new.value)
        return m


def _joined(inner: Reg, outer: Reg) -> int:
    """Flags of reading ``inner`` through ``outer`` (predicates: two inversions cancel)."""
    return inner.flags ^ outer.flags if outer.file in ("P", "UP") else outer.flags
