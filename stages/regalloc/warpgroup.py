"""Registers that warpgroup products have under way: nothing else may touch them before the wait.

A product (HGMMA and its kin) reads its A fragment and reads and writes its accumulators while the warp goes on.
WARPGROUP.DEPBAR waits for groups of products, WARPGROUP.ARRIVE hands over what the warp wrote. This pass follows the
groups over the blocks. Where an instruction touches a register that is under way it puts a wait in front, and where a
product needs a register that was written since the last ARRIVE it puts another ARRIVE in front, as ptxas does (it says
then that the products are serialized). So copies that allocation left between products cost time, never a wrong value.

Post: every ARRIVE uses the registers that the products behind it read, so that loads into them are waited for there.
"""

from __future__ import annotations

from typing import Final

from ir_format.diag import CompileError
from ir_format.flow import Cfg, build_cfg, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import NOT_UPT, ZERO, Function, Imm, Inst, Mem, Name, Operand, Reg, Unit

PRODUCTS: Final = facts.having("warpgroup")
_OPEN: Final = Name("N", "none")
_END: Final = Name("N", "gsb0")
_MOST: Final = 8
_NOTHING: Final = Reg("R", ZERO, 0, 2)
_NO_DESCRIPTOR: Final = Mem("M", None, None, 0, Reg("UR", ZERO, 0, 4))


class _State:
    """``groups[0]``: registers of the products since the last end of a group; then of the ended groups, youngest first.
    ``written``: registers written since the last ARRIVE; all of them where no ARRIVE was met."""

    __slots__ = ("groups", "shapes", "written")

    def __init__(self, groups: tuple[int, ...], written: int, shapes: frozenset[int]) -> None:
        self.groups = groups
        self.written = written
        self.shapes = shapes  # accumulator blocks under way, as register masks

    def key(self) -> tuple[tuple[int, ...], int, frozenset[int]]:
        return self.groups, self.written, self.shapes


_EMPTY: Final = (0,) * (_MOST + 1)


def order_warpgroups(unit: Unit) -> int:
    """The pass, on physical registers; returns how many instructions it put in, and says why, as ptxas does."""
    added = 0
    for f in unit.functions:
        if any(i.op in PRODUCTS for b in f.blocks for i in b.insts):
            notes: list[tuple[int, int]] = []
            added += _function(f, notes)
            unit.diags += _advisories(f.name, notes)
    return added


#: Advisories by number (texts and conditions measured): where something is put in, and what makes products wait for
#: each other.
_INJECTED: Final = {
    7517: "warpgroup.wait is injected in around line {} by compiler to allow use of registers defined by GMMA in "
    "function '{}'",
    7519: "warpgroup.arrive is injected in around line {} by compiler to allow use of registers in GMMA in function "
    "'{}'",
}
_SERIALIZED: Final = {
    7510: "wgmma pipeline crossing function boundary at a function call in the function '{}'",
    7513: "non wgmma instructions defining input registers of a wgmma between start and end of the pipeline stage in "
    "the function '{}'",
    7514: "non wgmma instructions reading accumulator registers of  a wgmma between start and end of the pipeline "
    "stage in the function '{}'",
    7515: "non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline "
    "stage in the function '{}'",
}


def _advisories(name: str, notes: list[tuple[int, int]]) -> list[tuple[str, str, int]]:
    """Where something was put in, by line, then once each reason for which products are serialized."""
    out = [
        f"(C{code}) " + _INJECTED[code].format(line, name) for code, line in dict.fromkeys(notes) if code in _INJECTED
    ]
    reasons = sorted({code for code, _ in notes if code in _SERIALIZED})
    out += [
        f"(C{code}) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        + _SERIALIZED[code].format(name)
        for code in reasons
    ]
    return [("info", text, 0) for text in out]


def _mask(regs: list[Reg]) -> int:
    mask = 0
    for r in regs:
        if r.file == "R" and r.num != ZERO:
            mask |= (1 << r.width) - 1 << r.num
    return mask


def _accumulators(inst: Inst) -> int:
    d = inst.dsts[0]
    c = inst.srcs[2 if type(inst.srcs[0]) is Reg else 1]
    assert isinstance(d, Reg) and isinstance(c, Reg)
    if c.num not in (ZERO, d.num):
        raise CompileError(f"{inst.op} without its accumulators in place", inst.line)
    return _mask([d])


def _function(func: Function, notes: list[tuple[int, int]]) -> int:
    cfg = build_cfg(func)
    exits: dict[int, _State] = {}
    added = 0
    dirty = set(cfg.rpo)
    while dirty:
        for pos in cfg.rpo:
            if pos not in dirty:
                continue
            dirty.discard(pos)
            state = _entry(cfg, pos, exits)
            block = func.blocks[pos]
            block.insts, state, more = _walk(block.insts, state, notes)
            added += more
            old = exits.get(pos)
            if old is None or old.key() != state.key():
                exits[pos] = state
                dirty.update(cfg.succs[pos])
    for block in func.blocks:
        _name_registers(block.insts)
    return added


def _entry(cfg: Cfg, pos: int, exits: dict[int, _State]) -> _State:
    groups, written, shapes = list(_EMPTY), 0, frozenset[int]()
    for pred in cfg.preds[pos]:
        s = exits.get(pred)
        if s is not None:
            groups = [a | b for a, b in zip(groups, s.groups)]
            written |= s.written
            shapes |= s.shapes
    return _State(tuple(groups), -1 if pos == cfg.rpo[0] else written, shapes)


def _walk(insts: list[Inst], state: _State, notes: list[tuple[int, int]]) -> tuple[list[Inst], _State, int]:
    out: list[Inst] = []
    groups, written, shapes = list(state.groups), state.written, state.shapes
    added = 0

    def wait(n: int) -> None:
        nonlocal shapes
        for k in range(n + 1, _MOST + 1):
            groups[k] = 0
        if not any(groups):
            shapes = frozenset()

    def settle(line: int) -> None:
        """Wait for everything; an open group is ended at its last product."""
        nonlocal added
        if groups[0]:
            if not _end_group(out):
                out.append(
                    Inst(
                        "HGMMA", ("64x8x16", "F16"), (_NOTHING,), (_NO_DESCRIPTOR, _NOTHING, NOT_UPT, _END), None, line
                    )
                )
                added += 1
            end_group()
        out.append(Inst("WARPGROUP", ("DEPBAR", "LE"), (), (_END, Imm("I", 0)), None, line))
        added += 1
        wait(0)

    def end_group() -> None:
        groups[1:] = [groups[0], *groups[1:_MOST]]
        groups[0] = 0

    for at, inst in enumerate(insts):
        if inst.op in PRODUCTS:
            own = _accumulators(inst)
            reads = _mask(read_regs(inst)) | own
            busy = 0
            for g in groups:
                busy |= g
            others = 0
            for s in shapes:
                if s != own:
                    others |= s
            if others & reads or busy & own and own not in shapes:
                notes.append((7517, inst.line))
                settle(inst.line)
            if written & reads:
                notes.append((7519, inst.line))
                out.append(Inst("WARPGROUP", ("ARRIVE",), (), (), None, inst.line))
                added += 1
                written = 0
            out.append(inst)
            groups[0] |= reads
            shapes |= {own} if own else frozenset()
            if inst.srcs[-1] == _END:
                end_group()
            continue
        if inst.op == "WARPGROUP":
            if "ARRIVE" in inst.mods:
                written = 0
            else:
                n = inst.srcs[1]
                assert isinstance(n, Imm)
                wait(n.value)
            out.append(inst)
            continue
        writes = _mask(written_regs(inst))
        touched = writes | _mask(read_regs(inst))
        accumulators = 0
        for s in shapes:
            accumulators |= s
        busy = 0
        for g in groups:
            busy |= g
        call = inst.op == "CALL" and busy != 0  # the callee may save and restore an accumulator that is being written
        if call or busy & writes or accumulators & busy & touched:
            notes.append(
                (
                    _reason(
                        call,
                        accumulators & busy & _mask(read_regs(inst)) != 0,
                        busy & writes,
                        accumulators,
                        groups[0] != 0 and _goes_on(insts, at),
                    ),
                    inst.line,
                )
            )
            settle(inst.line)
        written |= writes
        out.append(inst)
    return out, _State(tuple(groups), written, shapes), added


def _reason(call: bool, reads: bool, writes: int, accumulators: int, inside: bool) -> int:
    """The number of the advisory: 7517 where one wait is enough."""
    if call:
        return 7510
    if writes & accumulators and not reads:
        return 7515
    if not reads and writes and inside:
        return 7513
    return 7514 if inside else 7517


def _goes_on(insts: list[Inst], at: int) -> bool:
    """Whether another product follows in the stage."""
    for inst in insts[at + 1 :]:
        if inst.op in PRODUCTS:
            return True
        if inst.op == "WARPGROUP":
            return False
    return False


def _end_group(out: list[Inst]) -> bool:
    for inst in reversed(out):
        if inst.op in PRODUCTS:
            if inst.srcs[-1] == _OPEN:
                inst.srcs = (*inst.srcs[:-1], _END)
                return True
            return False
    return False


def _name_registers(insts: list[Inst]) -> None:
    """ARRIVE uses what the products up to the next WARPGROUP instruction read; DEPBAR, which can wait for no counter,
    uses nothing any more."""
    at: Inst | None = None
    found: dict[int, Operand] = {}

    def close() -> None:
        if at is not None:
            at.uses = tuple(found.values())

    for inst in insts:
        if inst.op == "WARPGROUP":
            close()
            at = inst if "ARRIVE" in inst.mods else None
            inst.uses = ()
            found = {}
        elif inst.op in PRODUCTS and at is not None:
            for r in read_regs(inst):
                if r.file == "R" and r.num != ZERO:
                    found[r.num] = r._replace(flags=0, mod="")
    close()
