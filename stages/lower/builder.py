"""Builder: the interface that lowering rules use, and how a rule is found.

A *rule* lowers one PTX instruction: ``def rule(b: Builder, inst: PtxInst) -> None``. A rule module (``alu.py``,
``memory.py``, ``math/f32.py``...) exports ``RULES: dict[str, Rule]``; :mod:`stages.lower.rules.table` merges them (a
key that two modules claim is an error). Keys, most specific first, for an instruction with op ``cvt`` and types
``('f32', 's32')``:

    ``cvt.f32.s32`` (op and all types)  >  ``cvt.f32`` (op and first type)  >  ``cvt`` (op)

The folder ``math`` holds the rules for f16, bf16, f32, f64 and their packed forms (add, fma, setp, min, cvt from or to
a float, div...), for integer div and rem, and for all transcendental functions. Other rules are in the folder
``rules``.

Conventions for every rule:

* **Registers.** A PTX register of 8, 16 or 32 bits is one R. The bits above its width are *undefined* (also for s8, s16
  and f16), so a rule that reads them (compare, shift right, widen, divide) extends the value first:
  :meth:`Builder.ext`. 64 bits are one R vreg of width 2, 128 bits one of width 4; f16x2 is packed in one R. Predicates
  are P vregs.
* **Operands.** ``b.src(x, type)`` returns the SASS operand of a PTX source operand: a Reg (width 1, 2 or 4) or an
  :class:`Imm`, which holds all 64 bits of a 64-bit type; ``b.lo``, ``b.hi`` and ``b.word`` return its parts.
  ``b.dst(x)`` returns the destination Reg (RZ or PT for the sink ``_``).
* **Forms.** A rule may put an immediate or ``c[][]`` operand in any source slot. The legalize pass at the end of the
  stage moves it to a register if the SM has no such form. Optional slots (unused predicate outputs and inputs) may be
  left out: `isa.complete` fills them.
* **Guards.** ``emit`` applies the guard of the PTX instruction to every instruction that has an effect or writes
  anything but a temporary of the rule; ``emit(..., guard=p)`` is combined with it. A rule that creates blocks or calls
  puts its code into ``with b.region():``, which turns the guard into a branch. Rules branch freely:
  :mod:`stages.lower.convergence.converge` inserts BSSY and BSYNC afterwards.
* **Refusal.** ``raise b.unsupported(inst)`` for every form that is not lowered. A rule never emits other code instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from ir_format import ptx
from ir_format.diag import CompileError
from ir_format.features import first, has
from ir_format.flow import operand_regs
from ir_format.isa import facts
from ir_format.model import (
    INV,
    NOT_PT,
    PT,
    ZERO,
    AttrValue,
    Block,
    Function,
    Imm,
    Inst,
    Label,
    Operand,
    Reg,
)
from ir_format.ptx import PtxFunction, PtxInst
from ir_format.ptx_types import TYPE_BITS
from ir_format.typed import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from stages.lower.abi.calls import LowStack
    from stages.lower.unit import UnitContext

Rule: TypeAlias = "Callable[[Builder, PtxInst], None]"

#: Instructions that may run without the PTX guard: they only write temporaries and have no other effect.
_SPECULATABLE: Final = facts.speculatable()

WORD = 0xFFFFFFFF


@cache
def split_op(text: str) -> tuple[str, tuple[str, ...]]:
    """``"ISETP.LT.AND"`` -> ``("ISETP", ("LT", "AND"))``."""
    op, *mods = text.split(".")
    return op, tuple(mods)


def is_signed(t: str) -> bool:
    return t[0] == "s"


class Builder:
    """Builds one function. ``ctx`` is the context that the functions of a unit share, ``pf`` the PTX function, and
    ``fn`` the Ori function."""

    __slots__ = (
        "block",
        "cache",
        "ctx",
        "definitions",
        "desc_reg",
        "fn",
        "guard",
        "labels",
        "line",
        "loc",
        "local_base",
        "local_offset",
        "low",
        "mark",
        "next_block",
        "padded",
        "param_words",
        "pf",
        "r1",
        "regs",
        "ret_addr",
        "ret_block",
        "sm",
    )  # fmt: skip

    def __init__(self, ctx: UnitContext, pf: PtxFunction, fn: Function) -> None:
        self.ctx = ctx
        self.sm: int = ctx.sm
        self.pf = pf
        self.fn = fn
        self.line = pf.line
        self.loc = -1
        self.guard: Reg | None = None
        self.regs: dict[int, Reg] = {}  # PTX register index -> vreg
        self.labels: dict[int, int] = {}  # PTX label index -> block id
        self.mark = 0  # vregs from here on are temporaries of the current rule
        self.next_block = 0
        self.desc_reg: Reg | None = None
        self.param_words: dict[str, list[Reg]] = {}
        self.padded: frozenset[str] = frozenset()  # `.param` variables whose word is accessed after their end
        self.local_offset: dict[str, int] = {}
        self.local_base: dict[str, Reg] = {}  # addresses of variables with a larger alignment than the stack
        self.ret_block = -1
        self.ret_addr: Reg | None = None
        self.cache: dict[str, Reg] = {}
        self.definitions: dict[int, PtxInst | None] | None = (
            None  # :func:`stages.lower.waterfall.definitions`, once asked
        )
        self.low: LowStack | None = None  # of the call being made, in a function with a dynamic stack
        self.r1 = fn.new_vreg("R", 1, 1, fixed=1, name="R1")
        self.block = Block(-1)
        self.place(self.new_block())

    # ------------------------------------------------------------------ registers

    def r(self, width: int = 1, align: int = 0) -> Reg:
        """A fresh R vreg of ``width`` words."""
        return self.fn.new_vreg("R", width, align)

    def p(self) -> Reg:
        """A fresh predicate."""
        return self.fn.new_vreg("P")

    def ur(self, width: int = 1) -> Reg:
        """A fresh uniform R vreg."""
        return self.fn.new_vreg("UR", width, 0, -1, 1)

    def fixed(self, num: int, width: int = 1) -> Reg:
        """A fresh R vreg that must get physical register ``num``."""
        return self.fn.new_vreg("R", width, 0, num)

    def reg(self, index: int) -> Reg:
        """The vreg of a PTX register."""
        got = self.regs.get(index)
        if got is None:
            d = self.pf.regs[index]
            if d.type == "pred":
                got = self.fn.new_vreg("P", name=d.name)
            else:
                bits = TYPE_BITS.get(d.type)
                if bits is None:
                    raise CompileError(f"Register '{d.name}' of type '.{d.type}' not supported by orias", self.line)
                got = self.fn.new_vreg("R", max(1, bits // 32), name=d.name)
            self.regs[index] = got
        return got

    def is_temp(self, x: Operand) -> bool:
        """True for RZ/PT and for vregs made by the current rule."""
        return type(x) is Reg and (
            x.num == ZERO or (x.num >= self.mark and not self.fn.vregs[x.num].name and self.fn.vregs[x.num].fixed < 0)
        )

    # ------------------------------------------------------------------ operands

    def bits(self, t: str) -> int:
        """Width of a PTX type in bits."""
        got = TYPE_BITS.get(t)
        if got is None:
            raise CompileError(f"Type '.{t}' not supported by orias", self.line)
        return got

    def words(self, t: str) -> int:
        """Registers that a value of a PTX type takes."""
        return max(1, self.bits(t) // 32)

    def src(self, x: ptx.Operand, t: str) -> Reg | Imm:
        """A source operand of PTX type ``t``: a Reg, or an Imm (64 bits wide for a 64-bit type, else a properly
        extended 32-bit one)."""
        k = type(x)
        if k is ptx.Reg:
            return self.reg(x.index)  # type: ignore[union-attr]
        if k is ptx.NotPred:
            got = self.reg(x.index)  # type: ignore[union-attr]
            return got._replace(flags=got.flags ^ INV)
        if k is ptx.Imm:
            return self.const(x.value, t)  # type: ignore[union-attr]
        if k is ptx.ImmF32:
            return Imm("I", x.bits)  # type: ignore[union-attr]
        if k is ptx.ImmF64:
            return Imm("I", x.bits)  # type: ignore[union-attr]
        if k is ptx.Sink:
            return self.zero(t)
        if k is ptx.Sym:
            return self.ctx.address_of(self, x)  # type: ignore[arg-type]
        if k is ptx.SReg:
            return self.ctx.special(self, x.name, t)  # type: ignore[union-attr]
        raise CompileError("Operand not supported by orias here", self.line)

    def const(self, value: int, t: str) -> Reg | Imm:
        """A literal of PTX type ``t`` (truncated to it, extended by its sign)."""
        if t == "pred":
            return PT if value else NOT_PT
        n = self.bits(t)
        value &= (1 << n) - 1
        if n < 32 and t[0] == "s" and value >> (n - 1):
            value -= 1 << n
        return Imm("I", value & WORD if n <= 32 else value)

    def dst(self, x: ptx.Operand, t: str = "b32") -> Reg:
        """The destination register; RZ or PT for the sink."""
        if type(x) is ptx.Reg:
            return self.reg(x.index)
        if type(x) is ptx.Sink:
            return self.zero(t)
        raise CompileError("Destination operand not supported by orias", self.line)

    def zero(self, t: str) -> Reg:
        """RZ with the width of the type, or PT."""
        return PT if t == "pred" else Reg("R", ZERO, 0, self.words(t))

    def word(self, x: Reg | Imm, i: int) -> Reg | Imm:
        """Word ``i`` of an operand (beyond its end: 0)."""
        if type(x) is Imm:
            return Imm("I", (x.value >> (32 * i)) & WORD)
        assert isinstance(x, Reg)
        if x.num == ZERO or i >= x.width:
            return Reg("R", ZERO)
        return Reg(x[0], x[1], x[2] + i, 1, x[4], x[5])

    def lo(self, x: Reg | Imm) -> Reg | Imm:
        """Low word."""
        return self.word(x, 0)

    def hi(self, x: Reg | Imm) -> Reg | Imm:
        """High word of a 64-bit operand."""
        return self.word(x, 1)

    def lo_r(self, x: Reg) -> Reg:
        """Low word of a register (typed)."""
        return x._replace(width=1) if x.num != ZERO else Reg("R", ZERO)

    def hi_r(self, x: Reg) -> Reg:
        """High word of a 64-bit register (typed)."""
        return x._replace(sub=x.sub + 1, width=1) if x.num != ZERO else Reg("R", ZERO)

    def in_reg(self, x: Operand, width: int = 1) -> Reg:
        """The operand in an R register of ``width`` words (itself if it is one already)."""
        if type(x) is Reg and x.file == "R" and not x.flags and not x.mod and (x.width == width or x.num == ZERO):
            return x if x.width == width else x._replace(width=width)
        d = self.r(width)
        self.copy(d, x)
        return d

    def ext(self, x: Reg | Imm, t: str) -> Reg | Imm:
        """The low 8 or 16 bits of ``x`` extended to 32 by the sign of type ``t``; a 32-bit or wider value as it is."""
        n = self.bits(t)
        if n >= 32:
            return x
        if type(x) is Imm:
            return self.const(x.value, t)
        d = self.r()
        if is_signed(t):
            self.emit("PRMT", d, (x, Imm("I", 0x8880 if n == 8 else 0x9910), Reg("R", ZERO)))
        else:
            self.emit("LOP3.LUT", d, (x, Imm("I", (1 << n) - 1), Reg("R", ZERO), Imm("I", 0xC0)))
        return d

    # ------------------------------------------------------------------ instructions

    def emit(
        self,
        op: str,
        dsts: Operand | Sequence[Operand] = (),
        srcs: Sequence[Operand] = (),
        guard: Reg | None = None,
        uses: tuple[Operand, ...] = (),
        defs: tuple[Operand, ...] = (),
        attrs: dict[str, AttrValue] | None = None,
    ) -> Inst:
        """Append an instruction; ``op`` is dotted (``"ISETP.GE.U32.AND"``), a single destination may be given without a
        tuple."""
        name, mods = split_op(op)
        d: tuple[Operand, ...] = dsts if type(dsts) is tuple and (not dsts or type(dsts[0]) is not str) else (dsts,)
        g = guard
        outer = self.guard
        if outer is not None:
            temps = all(self.is_temp(x) for x in d) and not defs
            if name not in _SPECULATABLE or not temps:
                if temps and d:
                    read = {
                        r.num for o in (*srcs, *uses) for r in operand_regs(o)
                    }  # what the instruction changes in place keeps its value
                    for x in d:
                        if (
                            type(x) is Reg
                            and x.num != ZERO
                            and x.sub == 0
                            and x.width == self.fn.vregs[x.num].width
                            and x.num not in read
                        ):
                            self._append(Inst("UNDEF", (), (x,), (), None, self.line, self.loc))
                g = outer if g is None else self._both(outer, g)
        inst = Inst(name, mods, d, tuple(srcs), g, self.line, self.loc, None, uses, defs, attrs)
        self._append(inst)
        return inst

    def _append(self, inst: Inst) -> None:
        self.block.insts.append(inst)

    def _both(self, a: Reg, c: Reg) -> Reg:
        """A predicate that is ``a and c``."""
        d = self.p()
        self._append(
            Inst("PLOP3", ("LUT",), (d, PT), (a, c, PT, Imm("I", 0x80), Imm("I", 0)), None, self.line, self.loc)
        )
        return d

    def copy(self, dst: Reg, src: Operand, guard: Reg | None = None) -> None:
        """``dst <- src`` of any width; a wide immediate is taken apart."""
        if type(src) is Imm and dst.width > 1:
            for i in range(dst.width):
                self.copy(dst._replace(sub=dst.sub + i, width=1), Imm("I", (src.value >> (32 * i)) & WORD), guard)
            return
        if dst.num == ZERO:
            return
        if type(src) is Reg and src.file == "R" and src.width != dst.width:
            if src.num == ZERO or src.width > dst.width:
                src = src._replace(width=dst.width)
            else:
                for i in range(dst.width):
                    self.copy(dst._replace(sub=dst.sub + i, width=1), self.word(src, i), guard)
                return
        self.emit("COPY", dst, (src,), guard)

    def select(self, dst: Reg, a: Reg | Imm, c: Reg | Imm, p: Reg) -> None:
        """``dst <- p ? a : c`` for any width."""
        for i in range(dst.width):
            self.emit("SEL", self.word(dst, i), (self.in_reg(self.word(a, i)), self.word(c, i), p))

    def not_(self, p: Reg) -> Reg:
        """The negated predicate operand."""
        return p._replace(flags=p.flags ^ INV)

    # ------------------------------------------------------------------ control flow

    def new_block(self) -> int:
        """A block id for later :meth:`place`."""
        self.next_block += 1
        return self.next_block - 1

    def place(self, block: int) -> None:
        """Start block ``block`` here (the previous one falls through to it unless it ended in a jump)."""
        self.block = Block(block)
        self.fn.blocks.append(self.block)
        self.desc_reg = None

    def branch(self, block: int, p: Reg | None = None) -> None:
        """Jump to a block, if ``p``; after a conditional jump a new block starts."""
        self.emit("BRA", (), (Label("L", block),), p)
        if p is not None or self.guard is not None:
            self.place(self.new_block())

    @contextmanager
    def region(self) -> Iterator[None]:
        """A stretch in which blocks may be made: the PTX guard becomes a branch around it."""
        g, self.guard = self.guard, None
        if g is None:
            yield
            return
        end = self.new_block()
        self.branch(end, self.not_(g))
        yield
        self.place(end)
        self.guard = g

    # ------------------------------------------------------------------ the rest

    def unsupported(self, inst: PtxInst, why: str = "") -> CompileError:
        """The error that refuses a PTX instruction."""
        tail = f" ({why})" if why else ""
        return CompileError(
            f"Instruction '{inst.opcode}' not supported by orias on .target '{self.ctx.target_name}'{tail}", inst.line
        )

    def has(self, feature: str) -> bool:
        """Whether the SM has a feature of :mod:`ir_format.features`."""
        return has(self.sm, feature)

    def need(self, inst: PtxInst, feature: str) -> None:
        """Refuse the instruction on an SM without the feature."""
        if not has(self.sm, feature):
            raise self.unsupported(inst, f"needs sm_{first(feature)}")

    def call_helper(self, name: str, args: Sequence[Reg | Imm]) -> list[Reg]:
        """Call a library function; one operand per PTX parameter, one fresh Reg per return value."""
        return self.ctx.call_helper(self, name, args)
