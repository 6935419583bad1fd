"""The verifier: the rules for a unit at each level, by the instruction rows and the control-flow rules.

`wire` checks types, bounds and references. The verifier checks meaning: every instruction has a form on the target,
jumps are at block ends only, no path falls off a function, no pseudo instruction is left where none may be, pairs are
aligned, control words are legal. A broken rule raises a CompileError that names the function, the block and
instruction, the PTX line and the rule.
"""

from __future__ import annotations

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import falls_through, is_terminator, read_regs, written_regs
from ir_format.hazards import hazards
from ir_format.model import PSEUDO, ZERO, Block, Const, Function, Imm, Inst, Label, Reg, Unit

# Pseudo instructions legal per level; `allocated` has none (RegAlloc expands them), and PHI lives only inside
# `optimize`.
_PSEUDO_AT = {"ori": PSEUDO - {"PHI"}}


def _bad(f: Function, b: Block | None, i: Inst | None, rule: str) -> CompileError:
    where = f"function {f.name}" + (f", block .L{b.id}" if b is not None else "")
    if i is not None and b is not None:
        where += f", instruction {next((n for n, x in enumerate(b.insts) if x is i), -1)} ({'.'.join((i.op, *i.mods))})"
    return CompileError(f"invalid IR: {where}: {rule}", i.line if i is not None else 0)


def verify_unit(unit: Unit, level: str, target: str) -> None:
    """Check a whole unit. Raises CompileError for the first rule that does not hold."""
    spec = isa.target(target)
    if level != "encoded" and not unit.functions:
        raise CompileError(f"invalid IR: unit {unit.name} has no function")
    if level == "encoded" and not unit.code:
        raise CompileError(f"invalid IR: unit {unit.name} has no code")
    for f in unit.functions:
        verify_function(f, level, spec)


def verify_function(f: Function, level: str, spec: isa.Target) -> None:
    """Check one function."""
    if not f.blocks:
        raise _bad(f, None, None, "it has no block")
    if falls_through(f.blocks[-1]) and not _padding(f, level):
        raise _bad(f, f.blocks[-1], None, "control falls off the end of the function")
    pseudo = _PSEUDO_AT.get(level, frozenset())
    places = len(f.locs)
    for n, place in enumerate(f.locs):
        if place[3] >= n:
            raise _bad(f, None, None, f"source position {n} is inlined at {place[3]}, which does not precede it")
    matched: dict[object, bool] = {}
    for b in f.blocks:
        last = len(b.insts) - 1
        for n, i in enumerate(b.insts):
            if i.loc >= places:
                raise _bad(f, b, i, f"there is no source position {i.loc}")
            if n != last and is_terminator(i):
                raise _bad(f, b, i, "a jump or exit comes before the end of the block")
            if i.op in PSEUDO:
                if i.op not in pseudo:
                    raise _bad(f, b, i, f"this pseudo instruction can't occur at level {level}")
                _check_pseudo(f, b, i)
                continue
            key = (i.op, i.mods, i.dsts, i.srcs, i.guard)
            ok = matched.get(key)
            if ok is None:
                ok = matched[key] = spec.match(i, True) is not None
            if not ok:
                raise _bad(f, b, i, _unfit(spec, i))
            if level in ("scheduled", "encoded"):
                _check_ctl(f, b, i, spec.sm)
            if level != "ori":
                _check_alignment(f, b, i)


def _unfit(spec: isa.Target, i: Inst) -> str:
    """Why no form of the target takes an instruction."""
    if spec.match(i) is None:
        return "the target has no encoding for this instruction with these operands"
    return "a register of another width than the instruction reads or writes there"


def _padding(f: Function, level: str) -> bool:
    """Whether the last block is the padding after a program, as in a lifted cubin: only NOPs, and no path leads
    there."""
    last = f.blocks[-1]
    if level not in ("scheduled", "encoded") or len(f.blocks) < 2 or any(i.op != "NOP" for i in last.insts):
        return False
    named = {
        o.block
        for b in f.blocks
        for i in b.insts
        for group in (i.dsts, i.srcs, i.uses)
        for o in group
        if type(o) is Label
    }
    return last.id not in named and not falls_through(f.blocks[-2])


def _check_pseudo(f: Function, b: Block, i: Inst) -> None:
    """Check the operands of a pseudo instruction: a copy has as many sources as destinations, and destinations are
    registers."""
    op = i.op
    if op == "COPY" or op == "PCOPY":
        if len(i.dsts) != len(i.srcs) or not i.dsts or (op == "COPY" and len(i.dsts) != 1):
            raise _bad(f, b, i, f"{len(i.dsts)} destinations and {len(i.srcs)} sources")
        for to, by in zip(i.dsts, i.srcs):
            if type(by) is Reg and type(to) is Reg and to.width != by.width and by.num != ZERO:
                raise _bad(f, b, i, f"a destination of width {to.width} and a source of width {by.width}")
            if type(by) not in (Reg, Imm, Const):
                raise _bad(f, b, i, "a source that is no value")
    elif i.srcs:
        raise _bad(f, b, i, "it has no sources")
    for to in i.dsts:
        if type(to) is not Reg or to.num == ZERO:
            raise _bad(f, b, i, "a destination that is no register")
    if op == "FENTRY" and (i.dsts or b is not f.blocks[0]):
        raise _bad(f, b, i, "it is in the first block and lists its registers as defs")


def _check_ctl(f: Function, b: Block, i: Inst, target: int) -> None:
    """Check that the control word is there and its stall/yield field is legal (measured B2: 0..15 and 17..27 of the
    5-bit field)."""
    if i.ctl is None:
        raise _bad(f, b, i, "it has no control word")
    if i.ctl.yield_ and not 1 <= i.ctl.stall <= 11:
        raise _bad(f, b, i, f"stall {i.ctl.stall} with the yield bit set does not exist")
    if i.ctl.wr == 6 or i.ctl.rd == 6:
        raise _bad(f, b, i, "there is no scoreboard 6")
    if i.ctl.wr != 7 or i.ctl.rd != 7:
        needless = hazards(target).needless(i)
        if needless:
            raise _bad(f, b, i, needless)


def _check_alignment(f: Function, b: Block, i: Inst) -> None:
    for r in (*written_regs(i), *read_regs(i)):
        _aligned(f, b, i, r)


def _aligned(f: Function, b: Block, i: Inst, r: Reg) -> None:
    if r.width == 1 or r.num == ZERO:
        return
    need = 2 if r.width == 2 else 4
    if r.num % need:
        raise _bad(f, b, i, f"{r.file}{r.num} of width {r.width} is not aligned to {need}")
