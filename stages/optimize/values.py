"""Which virtual registers behave as values: one unguarded definition per component, which dominates every use.

PTX from real compilers is mostly in this shape already; the registers that are not (loop variables, results of two
branches) are left alone by the value passes. If `x` and `y` are both values and `x` is a copy of `y`, then `y` may
stand for `x` anywhere: a path on which `y` is computed again between the copy and a use would give a path to the use
around the copy, and the copy dominates the use.
"""

from __future__ import annotations

from itertools import accumulate

from ir_format.flow import (
    Cfg,
    DominatorTree,
    build_cfg,
    dominators,
    is_guarded,
    operand_regs,
    read_regs,
    written_regs,
)
from ir_format.isa import facts
from ir_format.isa.sregs import INVARIANT
from ir_format.model import ZERO, Function, Imm, Inst, Operand, Reg
from ir_format.typed import Final, TypeAlias
from stages.optimize.evaluate.operands import value_of
from stages.optimize.ssa.webs import Webs, has_ties

Cell = tuple[int, int]  # (virtual register, component)
#: A cell as one number (:attr:`Values.base`): what is known of cells is asked for every operand.
Lane: TypeAlias = int

#: Instructions without an effect: may be dropped when unused and computed once when equal. LDC reads constant banks,
#: which a kernel can't write.
PURE: Final = facts.having("pure")
_SPECIAL: Final = facts.having("sreg")


def is_pure(inst: Inst) -> bool:
    """Whether the instruction only computes its destinations from its sources."""
    return not inst.uses and computes(inst)


def computes(inst: Inst) -> bool:
    """As :func:`is_pure`, whatever is in ``uses``: in SSA form the old values of a guarded write."""
    if inst.op in PURE:
        return not inst.defs and not (inst.attrs and "frame" in inst.attrs)
    if inst.op in _SPECIAL:
        return str(getattr(inst.srcs[0], "name", "")).startswith(INVARIANT)
    return False


def copied(inst: Inst) -> Operand | None:
    """What an unguarded COPY or MOV puts into its destination; None for any other instruction."""
    if inst.op not in ("COPY", "MOV") or is_guarded(inst) or inst.uses or inst.defs:
        return None
    if inst.op == "MOV" and len(inst.srcs) > 1 and inst.srcs[1] != Imm("I", 15):  # a byte mask
        return None
    return inst.srcs[0]


#: What ``Values.value`` says of a register: written anywhere; a value that may live longer than it does; a value whose
#: register others use (:class:`Webs`).
OPAQUE, FREE, SHARED = 0, 1, 2


class Values:
    """The value registers of a function: definitions and use counts, which passes on SSA form keep up to date.
    ``value[v]``: OPAQUE, FREE or SHARED; ``web[v]``: what its web is named by; ``base[v]``: its first lane.
    By lane: ``defs``, the unguarded instruction that makes it; ``place``, the block of that (-1: none); ``uses``, how
    many operands read it.

    ``combined``: whether instructions were combined; since the start of that ``stale`` holds registers that got another
    definition or lost a reader, ``rewritten`` identities of instructions that became others."""

    def __init__(
        self, func: Function, webs: Webs | None = None, cfg: Cfg | None = None, tree: DominatorTree | None = None
    ) -> None:
        self.func = func
        self.cfg = build_cfg(func) if cfg is None else cfg
        self.web = list(range(len(func.vregs)))
        if webs is not None:
            self.web[: webs.count] = webs.top
        self.tree = DominatorTree(self.cfg, dominators(self.cfg)) if tree is None else tree
        self.value = bytearray(b"\1" * len(func.vregs))
        self.base = list(accumulate([v.width for v in func.vregs], initial=0))
        count = self.base.pop()
        self.defs: list[Inst | None] = [None] * count
        self.place = [-1] * count
        self.uses = [0] * count
        self.combined = False
        self.stale: set[int] = set()
        self.rewritten: set[int] = set()
        self._scan()

    def dominates(self, upper: int, lower: int) -> bool:
        """Whether block position ``upper`` dominates ``lower``."""
        return self.tree.dominates(upper, lower)

    def _scan(self) -> None:
        value, defs, place, uses, base = self.value, self.defs, self.place, self.uses, self.base
        vregs = self.func.vregs
        web = self.web
        for n, top in enumerate(web):
            if top != n:
                value[n] = value[top] = SHARED
        for n, v in enumerate(vregs):
            if v.fixed >= 0:
                value[n] = OPAQUE
        blocks = self.func.blocks
        #: Register and lane that a block reads before it is written there or anywhere, and the block.
        early: list[tuple[int, Lane, int]] = []
        for pos in self.cfg.rpo:
            for inst in blocks[pos].insts:
                phi = inst.op == "PHI"
                for r in read_regs(inst):
                    _, num, sub, width, _, _ = r
                    first = base[num] + sub
                    for lane in (first,) if width == 1 else range(first, first + width):
                        uses[lane] += 1
                        if place[lane] != pos and not phi:
                            early.append((num, lane, pos))
                if not inst.dsts and not inst.defs:
                    continue
                written = written_regs(inst)
                if written and inst.guard is not None and is_guarded(inst):
                    for r in written:
                        if value[r.num] == SHARED and has_ties(inst):
                            for lane in self.lanes(r):
                                place[lane] = pos
                        else:
                            value[r.num] = OPAQUE
                    continue
                for r in written:
                    _, num, sub, width, _, _ = r
                    first = base[num] + sub
                    for lane in (first,) if width == 1 else range(first, first + width):
                        if defs[lane] is not None:
                            value[num] = OPAQUE
                        defs[lane] = inst
                        place[lane] = pos
        for num, lane, pos in early:
            if value[num]:
                at = place[lane]
                if at < 0 or at == pos or not self.dominates(at, pos):
                    value[num] = OPAQUE

    def new_register(self, width: int = 1) -> None:
        """A register was added to the function, which is written once."""
        self.web.append(len(self.value))
        self.value.append(FREE)
        self.base.append(len(self.uses))
        self.uses += [0] * width
        self.defs += [None] * width
        self.place += [-1] * width

    def lanes(self, r: Reg) -> range:
        """The lanes that a register operand names."""
        first = self.base[r.num] + r.sub
        return range(first, first + r.width)

    def part_of(self, vreg: int, part: int) -> Inst | None:
        """The unguarded instruction that makes a part of a value."""
        return self.defs[self.base[vreg] + part]

    def is_value(self, r: Reg) -> bool:
        """Whether the operand is RZ, PT or a value."""
        return r.num == ZERO or bool(self.value[r.num])

    def def_of(self, r: Reg) -> Inst | None:
        """The instruction that makes a one-word value, or None."""
        if r.num == ZERO or not self.value[r.num]:
            return None
        return self.defs[self.base[r.num] + r.sub]

    def constant(self, r: Reg, lane: int = 0) -> int | None:
        """The number in a word of a value that one move of a number makes; None for any other."""
        if r.num == ZERO:
            return 0
        made = self.defs[self.base[r.num] + r.sub + lane] if self.value[r.num] else None
        source = copied(made) if made is not None else None
        if source is None or made is None or type(made.dsts[0]) is not Reg or made.dsts[0].width != 1:
            return None
        return value_of(source)

    def use_count(self, r: Reg) -> int:
        """How many operands read the register (the most of its components)."""
        if r.width == 1:
            return self.uses[self.base[r.num] + r.sub]
        return max([self.uses[lane] for lane in self.lanes(r)])

    def adjust(self, inst: Inst, by: int) -> None:
        """Add or take away an instruction's reads from the counts."""
        uses, base = self.uses, self.base
        for r in read_regs(inst):
            _, num, sub, width, _, _ = r
            if by < 0:
                self.stale.add(num)
            first = base[num] + sub
            for lane in (first,) if width == 1 else range(first, first + width):
                uses[lane] += by

    def remove(self, inst: Inst) -> None:
        """An instruction is removed from the function."""
        self.adjust(inst, -1)
        defs = self.defs
        for r in written_regs(inst):
            for lane in self.lanes(r):
                if defs[lane] is inst:
                    defs[lane] = None

    def add(self, inst: Inst, pos: int) -> None:
        """An instruction is put into the block at a position; registers that are new were announced
        (:meth:`new_register`)."""
        self.adjust(inst, +1)
        for r in written_regs(inst):
            self.stale.add(r.num)
            for lane in self.lanes(r):
                if not is_guarded(inst):
                    self.defs[lane] = inst
                self.place[lane] = pos

    def start_notes(self) -> None:
        """Instructions are about to be combined: from now on it is noted what changes."""
        self.combined = True
        self.stale = set()
        self.rewritten = set()

    def exchange(self, old: tuple[Operand, ...], new: tuple[Operand, ...]) -> None:
        """As :meth:`adjust`, for an instruction some of whose operands became others in the same places
        (destinations: addresses only)."""
        uses = self.uses
        for a, b in zip(old, new, strict=True):
            if a is not b:
                for o, by in ((a, -1), (b, +1)):
                    for r in operand_regs(o):
                        self.stale.add(r.num)
                        for lane in self.lanes(r):
                            uses[lane] += by
