"""Copy propagation within blocks: random programs store the same values before and after it; copies that it must
keep."""

from __future__ import annotations

import random

from ir_format.model import PT, RZ, Block, Function, Header, Inst, Reg, VReg
from stages.optimize.analyses import Analyses
from stages.optimize.scalar.copy_propagation import propagate_copies
from stages.plumbing.runner import Context, Flags
from tests.optimize.test_ssa import function, program, run, unit_of


def analyses(f: Function) -> Analyses:
    return Analyses(f, unit_of(f), Context(Header("ori", "sm_80"), None, Flags()))


def with_copies(seed: int) -> Function:
    """A random program into whose blocks sums and copies of them were inserted."""
    rng = random.Random(seed)
    f = program(rng)
    words = [Reg("R", n, c) for n, v in enumerate(f.vregs) if v.file == "R" for c in range(v.width)]
    for b in f.blocks[1:]:
        out: list[Inst] = []
        for i in b.insts:
            if rng.random() < 0.4:
                f.vregs.append(VReg("R"))
                s = Reg("R", len(f.vregs) - 1)
                out.append(Inst("IADD3", (), (s, PT, PT), (rng.choice(words), rng.choice(words), RZ)))
                out.append(Inst("COPY", (), (rng.choice(words),), (s,)))
            out.append(i)
        b.insts = out
    return f


def test_random_programs_store_the_same() -> None:
    changed = 0
    for seed in range(150):
        before, after = with_copies(seed), with_copies(seed)
        changed += propagate_copies(after, analyses(after))
        for k in range(4):
            assert run(before, random.Random(k)) == run(after, random.Random(k)), seed
    assert changed > 100


def one_block(vregs: list[VReg], *insts: Inst) -> list[Inst]:
    f = function(vregs, [Block(0, [*insts])])
    propagate_copies(f, analyses(f))
    return f.blocks[0].insts


def test_what_is_written_in_between_is_read_as_it_was() -> None:
    a, b, c = (Reg("R", n) for n in range(3))
    first = Inst("IADD3", (), (a, PT, PT), (c, c, RZ))
    copy = Inst("COPY", (), (b,), (a,))
    again = Inst("IADD3", (), (b, PT, PT), (c, c, RZ))
    store = Inst("STG", (), (), (b,))
    assert one_block([VReg("R")] * 3, first, copy, store)[-1].srcs == (a,)
    store = Inst("STG", (), (), (b,))
    assert one_block([VReg("R")] * 3, first, copy, again, store)[-1].srcs == (b,)


def test_fixed_registers_and_operands_written_in_place_stay() -> None:
    """An argument's register lives no longer than before; a register that is read and written in place stays."""
    a, b = Reg("R", 0), Reg("R", 1)
    fixed = [VReg("R", fixed=4), VReg("R")]
    made = one_block(fixed, Inst("COPY", (), (b,), (a,)), Inst("STG", (), (), (b,)))
    assert made[-1].srcs == (b,)
    make = Inst("IADD3", (), (a, PT, PT), (RZ, RZ, RZ))
    both = Inst("IADD3", (), (b, PT, PT), (b, b, RZ))
    assert one_block([VReg("R")] * 2, make, Inst("COPY", (), (b,), (a,)), both)[-1].srcs[:2] == (b, b)


def test_adjacent_lanes_are_read_from_their_vector() -> None:
    q, v = Reg("R", 0, 0, 2), Reg("R", 1, 0, 2)
    make = Inst("LDG", ("64",), (q,), ())
    lanes = [Inst("COPY", (), (Reg("R", 1, n),), (Reg("R", 0, n),)) for n in range(2)]
    store = Inst("STG", ("64",), (), (v,))
    assert one_block([VReg("R", 2, 2)] * 2, make, *lanes, store)[-1].srcs == (q,)
    crossed = [Inst("COPY", (), (Reg("R", 1, n),), (Reg("R", 0, 1 - n),)) for n in range(2)]
    store = Inst("STG", ("64",), (), (v,))
    assert one_block([VReg("R", 2, 2)] * 2, make, *crossed, store)[-1].srcs == (v,)
