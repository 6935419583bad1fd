"""Properties of the ISA rows that need no oracle: every row compiles, what is decoded encodes to the same bits, text reads back."""

from __future__ import annotations

import random

import pytest

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.isa.codec import ImmCodec
from ir_format.isa.machine import Refusal
from ir_format.isa.plan import Plan
from ir_format.isa.rowlang import SMS
from ir_format.isa.special import HiddenCodec, MemCodec
from ir_format.isa.text import read_operand
from ir_format.model import NOT_PT, PT, RZ, ZERO, Ctl, Imm, Inst, Label, Mem, Operand, Reg, imm
from tests.isa.generate import random_words

#: One SM of each family, and the words of every form that make 20,000 instructions there.
COUNT = {75: 52, 80: 46, 90: 36, 100: 40, 120: 40}
FAMILIES = tuple(COUNT)
CTL = Ctl(1, 0, 7, 7, 0)


def reg(n: int, width: int = 1) -> Reg:
    """A physical register."""
    return Reg("R", n, 0, width)


@pytest.mark.parametrize("sm", SMS)
def test_every_row_compiles(sm: int) -> None:
    """Every row parses on every SM, and every form has at least one modifier combination."""
    target = isa.target(sm)
    assert len(target.mnemonics()) > 100
    rng = random.Random(sm)
    for op in target.mnemonics():
        for form in target.forms(op):
            assert any(form.plan_for_word(form.fixvalue | rng.getrandbits(128) & form.modmask) for _ in range(400)), form.row.text


def readable(inst: Inst, plan: Plan) -> Inst:
    """The instruction as its text tells it: what nvdisasm does not print takes its default. That is hidden cache-policy bits, the descriptor of a
    global access before sm_90, the payload of a NaN, and which of two carries goes out where one alone is printed."""
    ops: list[Operand] = [*inst.dsts, *inst.srcs]
    for k, slot in enumerate(plan.slots):
        o, codec = ops[k], slot.codec
        if isinstance(codec, HiddenCodec) and slot.default is not None:
            ops[k] = slot.default
        elif isinstance(codec, MemCodec) and codec.hidden and isinstance(o, Mem):
            ops[k] = o._replace(desc=Reg("UR", ZERO, 0, 2))
        elif isinstance(codec, ImmCodec) and isinstance(o, Imm) and "NAN" in codec.fmt(o, 0):
            found = read_operand(codec.fmt(o, 0), codec, 0)
            assert isinstance(found, Imm) and codec.fmt(found, 0) == codec.fmt(o, 0)
            ops[k] = found
        elif k and slot.optional and slot.is_dst and plan.slots[k - 1].optional and ops[k - 1] == plan.slots[k - 1].default and isinstance(o, Reg):
            ops[k - 1], ops[k] = o, ops[k - 1]
    return Inst(inst.op, inst.mods, tuple(ops[: plan.ndst]), tuple(ops[plan.ndst :]), inst.guard, ctl=inst.ctl)


@pytest.mark.parametrize("sm", FAMILIES)
def test_round_trip(sm: int) -> None:
    """decode(encode(x)) == x and parse(print(x)) == x for 20,000 random instructions."""
    target = isa.target(sm)
    seen = plain = 0
    for form, word in random_words(target, COUNT[sm], sm, None, 5):
        found = target.decode_plan(word, 0x100)
        if isinstance(found, Refusal):
            continue
        inst, plan = found
        seen += 1
        assert target.encode(inst, 0x100) == word, (form.row.name, hex(word))
        said = readable(inst, plan)
        same = said == inst
        plain += same
        bits = word if same else target.encode(said, 0x100)
        text = target.format(inst, 0x100, plan)
        again = target.parse(text, 0x100)
        again.ctl = inst.ctl
        assert target.encode(again, 0x100) == bits, (text, hex(word))
        if not same:
            assert target.format(said, 0x100) == text
    assert seen >= 20000 and plain > 0.9 * seen


@pytest.mark.parametrize("sm", FAMILIES)
def test_random_words(sm: int) -> None:
    """100,000 random words never crash the decoder; what it takes prints, and encodes back. Half of them are damaged words of rows."""
    target = isa.target(sm)
    rng = random.Random(sm)
    made = [word for _, word in random_words(target, 4, sm + 1, None, 2)]
    taken = 0
    for k in range(100000):
        word = rng.getrandbits(128) if k % 2 else made[rng.randrange(len(made))] ^ 1 << rng.randrange(128) ^ (rng.getrandbits(1) << rng.randrange(128))
        found = target.decode_plan(word, 0)
        if isinstance(found, Refusal):
            assert found.reason
            continue
        taken += 1
        assert target.encode(found[0], 0) == word
        assert target.format(found[0], 0, found[1])
    assert taken > 10000


def test_known_words() -> None:
    """Words that ptxas writes, by hand."""
    target = isa.target(90)
    nop = Inst("NOP", ctl=Ctl(0, 0, 7, 7, 0))
    assert target.encode(nop) == 0x000FC000000000000000000000007918
    inst = Inst("IADD3", (), (reg(8), Reg("P", 0), PT), (reg(7), reg(4), RZ, NOT_PT, NOT_PT), None, ctl=Ctl(4, 1, 7, 7, 0))
    assert target.format(inst) == "IADD3 R8, P0, R7, R4, RZ"
    word = target.encode(inst)
    assert word & 0xFFF == 0x210 and word >> 81 & 7 == 0 and word >> 84 & 7 == 7
    bra = target.encode(Inst("BRA", (), (), (PT, Label("L", 3)), ctl=CTL), 0x40, {3: 0x100})
    assert target.decode(bra, 0x40).srcs[1] == Imm("I", 0x100)  # type: ignore[union-attr]


def test_complete() -> None:
    """Omitted slots get their defaults."""
    target = isa.target(90)
    assert target.complete("IADD3", (), (reg(0),), (reg(1), reg(2), reg(3))) == ((reg(0), PT, PT), (reg(1), reg(2), reg(3), NOT_PT, NOT_PT))
    dsts, srcs = target.complete("LEA", (), (reg(0),), (reg(1), reg(2), imm(4)))
    assert dsts == (reg(0), PT) and srcs == (reg(1), reg(2), RZ, imm(4), NOT_PT)
    dsts, srcs = target.complete("ISETP", ("GE", "AND"), (Reg("P", 0),), (reg(1), reg(2)))
    assert dsts == (Reg("P", 0), PT) and srcs[2:] == (PT, PT)
    with pytest.raises(CompileError, match="IADD9"):
        target.complete("IADD9", (), (reg(0),), ())


def test_refusals() -> None:
    """What can't be encoded is refused with the instruction's name and the reason."""
    target = isa.target(90)
    for inst in (
        Inst("MOV", (), (reg(300),), (reg(1), Imm("I", 15)), ctl=CTL),
        Inst("MOV", (), (reg(3),), (Imm("I", 1 << 40), Imm("I", 15)), ctl=CTL),
        Inst("MOV", (), (reg(3),), (reg(1), Imm("I", 15))),
        Inst("MOV", (), (reg(3),), (reg(1), Imm("I", 15)), ctl=Ctl(15, 1)),
    ):
        with pytest.raises(CompileError, match="MOV"):
            target.encode(inst)
    assert target.match(Inst("IADD3", (), (reg(0), PT, PT), (imm(1), imm(2), RZ, NOT_PT, NOT_PT))) is None


@pytest.mark.parametrize("text", ["", "FOO R1", "MOV R1", "MOV R1, R2, R3, R4", "@P9 MOV R1, R2", "LDG.E R1, [R2", "FADD R0, R1, x", "MOV \x00"])
def test_bad_text(text: str) -> None:
    """Text that is no instruction gives a diagnostic."""
    with pytest.raises(CompileError):
        isa.target(90).parse(text)


def test_address_symbol_is_refused() -> None:
    """A symbol in an address has no relocation: encode says so, with the PTX line, instead of dropping it."""
    from ir_format.model import Block, Function
    from stages.encode.encode import encode_function

    load = Inst("LDS", (), (reg(0),), (Mem("M", RZ, None, 8, None, "shared_array"),), None, 7, ctl=CTL)
    f = Function("k", "entry")
    f.blocks.append(Block(0, [load]))
    with pytest.raises(CompileError, match="shared_array") as caught:
        encode_function(f, isa.target(90))
    assert caught.value.line == 7
