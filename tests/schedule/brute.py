"""Random scheduled code, and a brute-force judge that shares no code with the scheduler: every pair of instructions on
a path, every register.

The judge knows the hazard tables (:meth:`Hazards.distance`) and the meaning of a control word; it shares no code with
``stages/schedule``.
"""

from __future__ import annotations

import random

from ir_format.flow import build_cfg
from ir_format.hazards import Access, Hazards, cell_name, hazards
from ir_format.model import INV, ZERO, Block, Function, Imm, Inst, Mem, Name, Operand, Reg, imm, label, mem

REACH = 45  # no table has more cycles


def r(n: int, width: int = 1) -> Reg:
    return Reg("R", n, 0, width)


def p(n: int, flags: int = 0) -> Reg:
    return Reg("P", n, 0, 1, flags)


def ur(n: int, width: int = 1) -> Reg:
    return Reg("UR", n, 0, width)


PT = Reg("P", ZERO)


def random_inst(rng: random.Random, sm: int, regs: int = 12) -> Inst:
    """One instruction over a few registers, of any class that the SM has."""

    def a(width: int = 1) -> Reg:
        return r(rng.randrange(regs) // width * width, width)

    def q() -> Reg:
        return p(rng.randrange(4), rng.choice((0, INV)))

    def u(width: int = 1) -> Reg:
        return ur(rng.randrange(6) // width * width, width)

    def pd() -> Reg:
        return p(rng.randrange(4))

    desc = u(2) if sm >= 80 else None
    address = mem(a(2), rng.randrange(4) * 4, None, desc)
    local = mem(a(), rng.randrange(4) * 4)
    table: list[tuple[str, tuple[str, ...], tuple[Operand, ...], tuple[Operand, ...]]] = [
        ("IADD3", (), (a(), pd(), PT), (a(), a(), a())),
        ("IADD3", ("X",), (a(), PT, PT), (a(), a(), a(), q(), q())),
        ("LOP3", ("LUT",), (PT, a()), (a(), a(), a(), imm(6), q())),
        ("IMAD", (), (a(), PT), (a(), a(), a())),
        ("FFMA", (), (a(),), (a(), a(), a())),
        ("FADD", (), (a(),), (a(), u())),
        ("IMAD", ("WIDE",), (a(2), PT), (a(), a(), a(2))),
        ("IMAD", ("HI",), (a(), PT), (a(), a(), a(2))),
        ("ISETP", ("GE", "AND"), (pd(), PT), (a(), a(), q())),
        ("FSETP", ("GE", "AND"), (pd(), PT), (a(), a(), q())),
        ("SEL", (), (a(),), (a(), a(), q())),
        ("MOV", (), (a(),), (a(),)),
        ("PLOP3", ("LUT",), (pd(), PT), (q(), q(), q(), imm(8), imm(0))),
        ("HFMA2", (), (a(),), (a(), a(), a())),
        ("HSETP2", ("GE", "AND"), (pd(), PT), (a(), a(), q())),
        ("VOTE", ("ANY",), (a(), pd()), (q(),)),
        ("P2R", (), (a(),), (Name("N", "PR"), a(), imm(127))),
        ("R2P", (), (Name("N", "PR"),), (a(), imm(127))),
        ("CS2R", (), (a(2),), (Name("N", "SRZ"),)),
        ("DFMA", (), (a(2),), (a(2), a(2), a(2))),
        ("DSETP", ("GE", "AND"), (pd(), PT), (a(2), a(2), q())),
        ("MUFU", ("RCP",), (a(),), (a(),)),
        ("F2I", (), (a(),), (a(),)),
        ("I2F", ("F64",), (a(2),), (a(),)),
        ("POPC", (), (a(),), (a(),)),
        ("FCHK", (), (pd(),), (a(), a())),
        ("S2R", (), (a(),), (Name("N", "SR_TID.X"),)),
        ("LDG", ("E",), (PT, a()), (address,)),
        ("LDG", ("E", "128"), (PT, a(4)), (address,)),
        ("LDG", ("E", "STRONG", "GPU"), (PT, a()), (address,)),
        ("STG", ("E",), (), (address, a())),
        ("STG", ("E", "64"), (), (address, a(2))),
        ("LDS", (), (a(),), (local,)),
        ("STS", (), (), (local, a())),
        ("LDL", (), (a(),), (local,)),
        ("STL", (), (), (local, a())),
        ("ATOMG", ("E", "ADD"), (PT, a()), (address, a())),
        ("RED" if sm == 75 else "REDG", ("E", "ADD"), (), (address, a())),
        ("SHFL", ("IDX",), (pd(), a()), (a(), a(), imm(31))),
        ("MATCH", ("ANY",), (PT, a()), (a(),)),
        ("BAR", ("SYNC",), (), (imm(0), imm(0))),
        ("MEMBAR", ("SC", "GPU"), (), ()),
        ("CCTL", ("IVALL",), (), ()),
        ("ERRBAR", (), (), ()),
        ("UIADD3", (), (u(),), (u(), u(), u())),
        ("UISETP", ("GE", "AND"), (Reg("UP", 1), Reg("UP", ZERO)), (u(), u(), Reg("UP", rng.randrange(2)))),
        ("UMOV", (), (u(),), (u(),)),
        ("R2UR", (), (PT, u()), (a(),)),
        ("S2UR", (), (u(),), (Name("N", "SR_CTAID.X"),)),
        ("VOTEU", ("ANY",), (u(), Reg("UP", 0)), (q(),)),
        ("IADD3", (), (a(), PT, PT), (a(), u(), a())),
        ("HMMA", ("16816", "F32"), (a(4),), (a(4), a(2), a(4))),
        ("HMMA", ("1688", "F32"), (a(4),), (a(2), a(), a(4))),
        ("IMMA", ("16832", "S8", "S8"), (a(4),), (a(4), a(2), a(4))),
    ]
    if sm >= 80:
        table += [
            ("REDUX", ("SUM",), (u(),), (a(),)),
            ("LDGSTS", ("E",), (), (mem(a()), address)),
            ("LDGDEPBAR", (), (), ()),
            ("DEPBAR", ("LE",), (), (Name("N", "SB0"), imm(rng.randrange(3)))),
            ("HFMA2", ("MMA",), (a(),), (a(), a(), a())),
        ]
    if sm >= 90:
        table += [("VIADD", (), (a(),), (a(), a())), ("VIMNMX", (), (a(),), (a(), a(), q()))]
    if sm >= 100:
        table += [("LDCU", ("64",), (u(2),), (imm(0),))]
    else:
        table += [("ULDC", ("64",), (u(2),), (imm(0),))]
    if sm >= 120:
        table += [
            ("IADD", ("64",), (a(2), PT), (a(2), a(2))),
            ("ISETP", ("GE", "U64", "AND"), (pd(), PT), (a(2), a(2), q())),
        ]
    op, mods, dsts, srcs = rng.choice(table)
    uniform = op.startswith("U") or op in ("LDCU", "VOTEU")
    guard = (
        q()
        if rng.random() < 0.25
        and not uniform
        and op not in ("BAR", "LDGDEPBAR", "DEPBAR", "SHFL", "VOTE", "MATCH", "REDUX")
        else None
    )
    return Inst(op, mods, dsts, srcs, guard)


def random_function(rng: random.Random, sm: int, blocks: int, size: int) -> Function:
    """Blocks in a row with random branches forward and back; registers are physical and few, so everything depends on
    everything."""
    f = Function("f")
    f.vregs = []
    for n in range(blocks):
        insts = [random_inst(rng, sm) for _ in range(rng.randrange(size + 1))]
        if n == blocks - 1:
            insts.append(Inst("EXIT", (), (), (PT,)))
        elif rng.random() < 0.7:
            guard = p(rng.randrange(4)) if rng.random() < 0.8 else None
            insts.append(Inst("BRA", (), (), (PT, label(rng.randrange(blocks))), guard))
        elif rng.random() < 0.2:
            insts.append(Inst("CALL", ("REL", "NOINC"), (), (PT, Imm("I", 0))))
        f.blocks.append(Block(n, insts))
    return f


class Fault(AssertionError):
    """A finding of the judge."""


def walk_path(f: Function, sm: int, rng: random.Random, steps: int) -> int:
    """Judge one random path through the scheduled function; returns the number of pairs checked.

    The clock is the earliest one: waits take no time. A scoreboard that is set stays above zero until an instruction
    waits for it.
    """
    h = hazards(sm)
    cfg = build_cfg(f)
    pos = 0
    clock = 0
    pairs = 0
    recent: list[tuple[Inst, Access, int]] = []  # instructions within REACH and their issue times
    known: dict[int, Access] = {}
    results: list[dict[int, Inst]] = [{} for _ in range(6)]
    reads: list[dict[int, Inst]] = [{} for _ in range(6)]
    set_at = [-99] * 6
    live: list[bool] = [False] * 6
    unannounced: dict[int, Inst] = {}  # registers that an instruction without a scoreboard may still read
    while steps > 0:
        for inst in f.blocks[pos].insts:
            steps -= 1
            c = inst.ctl
            assert c is not None
            if not (0 <= c.stall <= 15 and (not c.yield_ or 1 <= c.stall <= 11)):
                raise Fault(f"control word {c}")
            if id(inst) not in known:
                known[id(inst)] = h.access(inst)
            a = known[id(inst)]
            for k in range(6):
                if c.wait >> k & 1:
                    if clock - set_at[k] < 2:
                        raise Fault(f"{inst} waits for SB{k} {clock - set_at[k]} cycles after it was set")
                    results[k].clear()
                    reads[k].clear()
                    live[k] = False
            touched = {cell for cell, _, _ in a.reads} | {cell for cell, _, _ in a.writes}
            written = {cell for cell, _, _ in a.writes}
            for k in range(6):
                for cell in touched:
                    if cell in results[k]:
                        raise Fault(f"{inst} touches {cell_name(cell)} under way on SB{k} from {results[k][cell]}")
                for cell in written:
                    if cell in reads[k]:
                        raise Fault(f"{inst} overwrites {cell_name(cell)} that {reads[k][cell]} may still read (SB{k})")
                if inst.op in ("CALL", "RET") and live[k]:
                    raise Fault(f"{inst} with SB{k} under way")
            pairs += _check_recent(h, recent, inst, a, clock)
            if inst.op == "DEPBAR" and clock - set_at[0] < 2:
                raise Fault("DEPBAR too near")
            need = h.scoreboards(inst)
            if a.board_w and c.wr == 7:
                raise Fault(f"{inst} announces nothing")
            if c.wr != 7:
                if "W" not in need:
                    raise Fault(f"{inst} sets a counter for a result")
                set_at[c.wr] = clock
                live[c.wr] = True
                for cell in written:
                    results[c.wr][cell] = inst
            if c.rd != 7:
                set_at[c.rd] = clock
                live[c.rd] = True
                for cell, _, _ in a.reads:
                    if a.late >> cell & 1:
                        reads[c.rd][cell] = inst
            elif a.board_r:  # no read scoreboard: nothing may overwrite before the result is waited for
                holder = reads[c.wr] if c.wr != 7 else unannounced
                for cell, _, _ in a.reads:
                    if a.late >> cell & 1 and cell not in written:
                        holder[cell] = inst
            for cell in written:
                if unannounced.get(cell, inst) is not inst:
                    raise Fault(
                        f"{inst} overwrites {cell_name(cell)} that {unannounced[cell]} may still read, unannounced"
                    )
            recent = [e for e in recent if clock - e[2] < REACH]
            recent.append((inst, a, clock))
            clock += c.stall if c.stall else 1
        succs = cfg.succs[pos]
        if not succs:
            break
        pos = rng.choice(succs)
    return pairs


def _check_recent(h: Hazards, recent: list[tuple[Inst, Access, int]], inst: Inst, a: Access, clock: int) -> int:
    """Check the instruction against every one that issued within reach."""
    pairs = 0
    for cell in {cell for cell, _, _ in a.reads}:
        for before, first, at in reversed(recent):
            if not first.write_mask >> cell & 1:
                continue
            pairs += 1
            _hold("raw", h, before, first, inst, a, cell, clock - at)
            if not first.guarded:
                break  # older entries do not matter any more
    for cell in {cell for cell, _, _ in a.writes}:
        for before, first, at in recent:
            for kind, mask in (("waw", first.write_mask), ("war", first.read_mask)):
                if mask >> cell & 1:
                    pairs += 1
                    _hold(kind, h, before, first, inst, a, cell, clock - at)
    return pairs


def _hold(
    kind: str, h: Hazards, before: Inst, first: Access, inst: Inst, second: Access, cell: int, cycles: int
) -> None:
    need = h.between(kind, first, second, cell)
    if need is not None and cycles < need.cycles:
        raise Fault(
            f"{kind} {cell_name(cell)}: {before} {before.ctl} -> {inst}: {cycles} cycles, table says {need.cycles} "
            f"({need.source})"
        )


def values(insts: list[Inst], h: Hazards) -> tuple[dict[int, int], list[int]]:
    """Run a block symbolically: the value of every register is a hash of how it was computed; memory is the set of
    accesses, each with a hash of those before it that it may overlap. Two equivalent orders of a block give the same
    result."""
    regs: dict[int, int] = {}
    history: list[tuple[str, bool, object, int, int, int]] = []  # space, writes, base value, first byte, end, hash
    for inst in insts:
        a = h.access(inst)
        ins = [regs.get(cell, cell) for cell, _, _ in a.reads]
        old = [regs.get(cell, cell) for cell, _, _ in a.writes] if a.guarded else []
        touched = _touched(inst, regs)
        seen = []
        for space, writes, base, low, high, trace in history:
            for mine in touched:
                apart = base is not None and base == mine[2] and (high <= mine[3] or mine[4] <= low)
                if space == mine[0] and (writes or mine[1]) and not apart:
                    seen.append(trace)
        made = hash((inst.op, inst.mods, str(inst.srcs), str(inst.dsts), tuple(ins), tuple(old), tuple(sorted(seen))))
        history += [(*t, made) for t in touched]
        for n, (cell, _, _) in enumerate(a.writes):
            regs[cell] = hash((made, n))
    return regs, sorted(t[5] for t in history if t[1])


_SPACE = {
    "LDG": "g",
    "STG": "G",
    "ATOMG": "G",
    "REDG": "G",
    "RED": "G",
    "LDS": "s",
    "STS": "S",
    "LDL": "l",
    "STL": "L",
    "LDGSTS": "gS",
}
_SIZE = {"64": 8, "128": 16}


def _touched(inst: Inst, regs: dict[int, int]) -> list[tuple[str, bool, object, int, int]]:
    """Space, writes?, value of the base, bytes; anywhere in all spaces for fences and barriers."""
    if inst.op in ("BAR", "MEMBAR", "CCTL", "ERRBAR", "DEPBAR", "LDGDEPBAR"):
        return [(space, True, None, 0, 0) for space in "gsl"]
    where = next((o for o in (*inst.dsts, *inst.srcs) if isinstance(o, Mem)), None)
    out: list[tuple[str, bool, object, int, int]] = []
    for letter in _SPACE.get(inst.op, ""):
        size = next((_SIZE[m] for m in inst.mods if m in _SIZE), 4)
        if inst.op in ("LDGSTS", "ATOMG", "REDG", "RED") or where is None or where.base is None:
            out.append((letter.lower(), letter.isupper(), None, 0, 0))
        else:
            base = tuple(regs.get(where.base.num + n, where.base.num + n) for n in range(where.base.width))
            out.append((letter.lower(), letter.isupper(), base, where.offset, where.offset + size))
    return out
