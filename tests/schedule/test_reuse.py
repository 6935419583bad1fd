"""Reuse hints: which operands have one and which do not."""

from __future__ import annotations

import pytest

from ir_format import isa
from ir_format.model import NOT_PT, PT, REUSE, RZ, Block, Ctl, Function, Header, Imm, Inst, Operand, Reg, Unit
from stages.plumbing.runner import Context, Flags
from stages.schedule.reuse import set_reuse

SMS = ("sm_75", "sm_80", "sm_90", "sm_120")
KEEP, LEAVE = Ctl(4, 1), Ctl(5, 0)


def r(n: int) -> Reg:
    return Reg("R", n)


def add(d: int, *srcs: Operand, ctl: Ctl = KEEP) -> Inst:
    return Inst("IADD3", (), (r(d), PT, PT), (*srcs, NOT_PT, NOT_PT), ctl=ctl)


def hints(insts: list[Inst], target: str) -> list[list[int]]:
    """Per instruction the sources with a hint. Every word encodes and decodes to the same."""
    unit, f, block = Unit("k"), Function("k"), Block(0)
    block.insts, f.blocks, unit.functions = insts, [block], [f]
    set_reuse(unit, Context(Header("scheduled", target), None, Flags()))
    t = isa.target(target)
    for i in insts:
        back = t.decode(t.encode(i))
        assert isinstance(back, Inst) and back.srcs == i.srcs
    return [[n for n, o in enumerate(i.srcs) if type(o) is Reg and o.flags & REUSE] for i in insts]


@pytest.mark.parametrize("target", SMS)
def test_the_next_instruction_reads_the_same_slot(target: str) -> None:
    assert hints([add(9, r(2), r(3), RZ), add(10, r(2), r(4), RZ), add(11, r(5), r(2), RZ)], target) == [[0], [], []]
    assert hints([add(9, r(2), r(3), r(4)), add(10, r(7), r(3), r(4))], target) == [[1, 2], []]


@pytest.mark.parametrize("target", SMS)
def test_slots_are_those_of_the_word(target: str) -> None:
    """With an immediate in the second place the third source is where it always is."""
    fma = [Inst("FFMA", (), (r(9 + n),), (r(2 + n), Imm("I", 0x3F800000), r(7)), ctl=KEEP) for n in range(2)]
    assert hints(fma, target) == [[2], []]


@pytest.mark.parametrize("target", SMS)
def test_no_hint(target: str) -> None:
    """No hint if the register is overwritten, the warp may be switched, the next instruction waits, or the block
    ends."""
    assert hints([add(2, r(2), r(3), RZ), add(10, r(2), r(4), RZ)], target) == [[], []]
    assert hints([add(9, r(2), r(3), RZ, ctl=LEAVE), add(10, r(2), r(4), RZ)], target) == [[], []]
    assert hints([add(9, r(2), r(3), RZ), add(10, r(2), r(4), RZ, ctl=Ctl(4, 1, wait=1))], target) == [[], []]
    assert hints([add(9, r(2), r(3), RZ)], target) == [[]]


def test_matrix_products_keep_their_first_operand() -> None:
    def quad(n: int) -> Reg:
        return Reg("R", n, 0, 4)

    pair = [Reg("R", 40 + 2 * n, 0, 2) for n in range(2)]
    products = [
        Inst("HMMA", ("16816", "F32"), (quad(8 + 4 * n),), (quad(20), pair[n], quad(8 + 4 * n)), ctl=Ctl(8, 1))
        for n in range(2)
    ]
    assert hints(products, "sm_80") == [[0], []]
