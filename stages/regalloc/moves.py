"""COPY over physical places to machine instructions.

Places are registers of the five files and slots of file ``M`` ([R1 + offset]). Copies without a direct instruction
(slot to slot, P to a slot) never reach this module, because spill code goes through an R register. Every instruction
made here carries ``attrs["ra"]``, which tells inserted instructions from original ones.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.diag import CompileError
from ir_format.features import has
from ir_format.model import (
    INV,
    PT,
    RZ,
    UPT,
    URZ,
    ZERO,
    Const,
    Imm,
    Inst,
    Operand,
    Reg,
    imm,
    mem,
)
from ir_format.typed import Final

R1: Final = Reg("R", 1)
LUT_AND: Final = Imm("I", 0x80)
LUT_NONE: Final = Imm("I", 0)


class Mover:
    """Makes moves for one target. ``sm``: SM number; ``frame_base``: byte offset of slot 0 from R1."""

    __slots__ = ("frame_base", "sm")

    def __init__(self, sm: int, frame_base: int) -> None:
        self.sm = sm
        self.frame_base = frame_base

    def copy(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Instructions for ``dst <- src`` (physical, any width), guarded like ``origin``."""
        if type(src) is Reg:
            if src.num == ZERO:
                return self._zero(origin, dst, src)
            if dst.file == src.file and dst.num == src.num and not src.flags and not src.mod:
                return []
        kind = (
            src.file if type(src) is Reg else "imm" if type(src) is Imm else "const" if type(src) is Const else "other"
        )
        make = _TABLE.get((dst.file, kind))
        if make is None:
            raise CompileError(f"No move from {kind} to {dst.file} on sm_{self.sm}", origin.line)
        return make(self, origin, dst, src)

    def _zero(self, origin: Inst, dst: Reg, src: Reg) -> list[Inst]:
        file = dst.file
        if file == "M":
            return self._chunks(origin, dst, src)
        if file == "P" or file == "UP":
            return self.copy_predicate(origin, dst, src)
        make = {"R": self.to_r, "UR": self.imm_to_ur}.get(file)
        if make is None:
            raise CompileError(f"No move from zero to {file}", origin.line)
        zero = Imm("I", 0)
        return [i for part in range(dst.width) for i in make(origin, _part(dst, part), zero)]

    # one word at a time; a wide move whose halves overlap goes in the safe direction

    def _words(self, origin: Inst, dst: Reg, src: Reg, op: str, mods: tuple[str, ...] = ()) -> list[Inst]:
        order = range(dst.width)
        if dst.num > src.num and dst.file == src.file:
            order = range(dst.width - 1, -1, -1)
        return [
            _inst(origin, op, mods, (_part(dst, i),), (_part(src, i)._replace(flags=src.flags, mod=src.mod),))
            for i in order
        ]

    def r_to_r(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """MOV per word."""
        assert type(src) is Reg
        if src.flags:
            raise CompileError("A copy can't negate its source", origin.line)
        return self._words(origin, dst, src, "MOV")

    def to_r(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Immediate to R; a wide immediate holds all words."""
        assert type(src) is Imm
        if src.sym:
            if dst.width != 1:
                raise CompileError("A wide copy can't take a symbol's address", origin.line)
            return [_inst(origin, "MOV", (), (dst,), (src,))]
        return [
            _inst(origin, "MOV", (), (_part(dst, i),), (src._replace(value=(src.value >> (32 * i)) & 0xFFFFFFFF),))
            for i in range(dst.width)
        ]

    def imm_to_ur(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Immediate to UR."""
        assert type(src) is Imm
        return [
            _inst(origin, "UMOV", (), (_part(dst, i),), (src._replace(value=(src.value >> (32 * i)) & 0xFFFFFFFF),))
            for i in range(dst.width)
        ]

    def const_to_r(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Constant bank to R: MOV where ALU constants are used, LDC from sm_90 on."""
        assert type(src) is Const
        if has(self.sm, "alu-const-words") and src.ireg is None:
            return [_inst(origin, "MOV", (), (_part(dst, i),), (_word(src, i),)) for i in range(dst.width)]
        return self._load_const(origin, dst, src, "LDC")

    def const_to_ur(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Constant bank to UR: ULDC to sm_90, LDCU after."""
        assert type(src) is Const
        return self._load_const(origin, dst, src, "LDCU" if has(self.sm, "uniform-const-load") else "ULDC")

    def _load_const(self, origin: Inst, dst: Reg, src: Const, op: str) -> list[Inst]:
        out: list[Inst] = []
        at = 0
        while at < dst.width:
            wide = dst.width - at >= 2 and (dst.num + at) % 2 == 0 and (src.offset + 4 * at) % 8 == 0 and not src.sym
            step = 2 if wide else 1
            part = Reg(dst.file, dst.num + at, 0, step)
            out.append(_inst(origin, op, ("64",) if wide else (), (part,), (_word(src, at)._replace(width=step),)))
            at += step
        return out

    def ur_to_r(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """UR to R: MOV with a uniform source."""
        assert type(src) is Reg
        return self._words(origin, dst, src, "MOV")

    def r_to_ur(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """R to UR; the value must be uniform."""
        assert type(src) is Reg
        return self._words(origin, dst, src, "R2UR")

    def ur_to_ur(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """UMOV per word."""
        assert type(src) is Reg
        return self._words(origin, dst, src, "UMOV")

    def copy_predicate(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Predicate to predicate, with or without negation: the AND of the source and true."""
        assert type(src) is Reg
        if dst.file == "P":
            srcs = (
                src if src.file == "P" or src.num != ZERO else PT._replace(flags=src.flags),
                PT,
                PT,
                LUT_AND,
                LUT_NONE,
            )
            return [_inst(origin, "PLOP3", ("LUT",), (dst, PT), srcs)]
        usrcs = (src if src.num != ZERO else UPT._replace(flags=src.flags), UPT, UPT, LUT_AND, LUT_NONE)
        return [_inst(origin, "UPLOP3", ("LUT",), (dst, UPT), usrcs)]

    def p_to_r(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Predicate to R: 1 or 0."""
        assert type(src) is Reg
        return [_inst(origin, "SEL", (), (dst,), (RZ, imm(1), src._replace(flags=src.flags ^ INV)))]

    def r_to_p(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """R to predicate: not zero."""
        return [_inst(origin, "ISETP", ("NE", "U32", "AND"), (dst, PT), (src, RZ, PT))]

    def up_to_ur(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Uniform predicate to UR: 1 or 0."""
        assert type(src) is Reg
        return [_inst(origin, "USEL", (), (dst,), (URZ, imm(1), src._replace(flags=src.flags ^ INV)))]

    def ur_to_up(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """UR to uniform predicate: not zero."""
        return [_inst(origin, "UISETP", ("NE", "U32", "AND"), (dst, UPT), (src, URZ, UPT))]

    def bmov(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Convergence barrier to or from R."""
        assert type(src) is Reg
        return [_inst(origin, "BMOV", ("32",), (dst,), (src,))]

    def store(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """R to slots."""
        assert type(src) is Reg
        return self._chunks(origin, dst, src)

    def load(self, origin: Inst, dst: Reg, src: Operand) -> list[Inst]:
        """Slots to R."""
        assert type(src) is Reg
        return self._chunks(origin, dst, src)

    def _chunks(self, origin: Inst, dst: Reg, src: Reg) -> list[Inst]:
        """64-bit accesses where register and slot are even, else 32-bit ones."""
        slot, reg = (dst, src) if dst.file == "M" else (src, dst)
        out: list[Inst] = []
        at = 0
        while at < reg.width:
            offset = self.frame_base + 4 * (slot.num + at)
            zero = reg.num == ZERO
            step = 2 if reg.width - at >= 2 and offset % 8 == 0 and (zero or (reg.num + at) % 2 == 0) else 1
            part = Reg("R", ZERO if zero else reg.num + at, 0, step)
            mods = ("64",) if step == 2 else ()
            if slot is dst:
                out.append(_inst(origin, "STL", mods, (), (mem(R1, offset), part), "spill"))
            else:
                out.append(_inst(origin, "LDL", mods, (part,), (mem(R1, offset),), "refill"))
            at += step
        return out


_TABLE: Final[dict[tuple[str, str], Callable[[Mover, Inst, Reg, Operand], list[Inst]]]] = {
    ("R", "R"): Mover.r_to_r,
    ("R", "imm"): Mover.to_r,
    ("R", "const"): Mover.const_to_r,
    ("R", "UR"): Mover.ur_to_r,
    ("R", "P"): Mover.p_to_r,
    ("R", "B"): Mover.bmov,
    ("R", "M"): Mover.load,
    ("M", "R"): Mover.store,
    ("UR", "R"): Mover.r_to_ur,
    ("UR", "UR"): Mover.ur_to_ur,
    ("UR", "imm"): Mover.imm_to_ur,
    ("UR", "const"): Mover.const_to_ur,
    ("UR", "UP"): Mover.up_to_ur,
    ("P", "P"): Mover.copy_predicate,
    ("P", "UP"): Mover.copy_predicate,
    ("P", "R"): Mover.r_to_p,
    ("UP", "UP"): Mover.copy_predicate,
    ("UP", "UR"): Mover.ur_to_up,
    ("B", "R"): Mover.bmov,
}


def _inst(
    origin: Inst,
    op: str,
    mods: tuple[str, ...],
    dsts: tuple[Operand, ...],
    srcs: tuple[Operand, ...],
    mark: str = "move",
) -> Inst:
    return Inst(op, mods, dsts, srcs, origin.guard, origin.line, origin.loc, attrs={"ra": mark})


def _part(reg: Reg, index: int) -> Reg:
    return Reg(reg.file, reg.num + index) if reg.num != ZERO else Reg(reg.file, ZERO)


def _word(const: Const, index: int) -> Const:
    return const._replace(offset=const.offset + 4 * index, width=1)
