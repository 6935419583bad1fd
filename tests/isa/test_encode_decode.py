"""Properties of the ISA rows that need no oracle: every row compiles, a decoded word encodes to the same bits, text
parses back."""

from __future__ import annotations

import random

import pytest

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.isa.machine import Refusal
from ir_format.isa.rowlang import SMS
from ir_format.model import NOT_PT, PT, RZ, Ctl, Imm, Inst, Label, Mem, Reg, imm
from tests.isa.generate import random_words

#: One SM of each family, and the number of words per form that gives 20,000 instructions.
COUNT = {75: 38, 80: 36, 90: 28, 100: 34, 120: 34}
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
            assert any(form.plan_for_word(form.fixvalue | rng.getrandbits(128) & form.modmask) for _ in range(400)), (
                form.row.text
            )


@pytest.mark.parametrize("sm", FAMILIES)
def test_round_trip(sm: int) -> None:
    """decode(encode(x)) == x and parse(print(x)) == x for 8,000 random instructions; nvdisasm's plain text parses to an
    instruction with the same text."""
    target = isa.target(sm)
    seen = 0
    rng = random.Random(sm)
    for form, word in random_words(target, COUNT[sm] * 2 // 5, sm, None, 5):
        word ^= rng.getrandbits(12) << 110  # scoreboards
        found = target.decode_plan(word, 0x100)
        if isinstance(found, Refusal):
            continue
        inst, plan = found
        seen += 1
        assert target.encode(inst, 0x100) == word, (form.row.name, hex(word))
        exact = target.format(inst, 0x100, plan, exact=True)
        assert target.parse(exact, 0x100) == inst, (exact, hex(word))
        text, _, _ = exact.partition(" &")
        if seen % 4 == 0:
            assert text == target.format(inst, 0x100, plan)
            assert target.format(target.parse(text, 0x100), 0x100) == text
    assert seen >= 8000


@pytest.mark.parametrize("sm", FAMILIES)
def test_random_words(sm: int) -> None:
    """40,000 random words never crash the decoder; accepted words print, and encode back. Half of them are damaged
    words of rows."""
    target = isa.target(sm)
    rng = random.Random(sm)
    made = [word for _, word in random_words(target, 4, sm + 1, None, 2)]
    taken = 0
    for k in range(40000):
        word = (
            rng.getrandbits(128)
            if k % 2
            else made[rng.randrange(len(made))] ^ 1 << rng.randrange(128) ^ (rng.getrandbits(1) << rng.randrange(128))
        )
        found = target.decode_plan(word, 0)
        if isinstance(found, Refusal):
            assert found.reason
            continue
        taken += 1
        inst, plan = found
        assert target.encode(inst, 0) == word
        text = target.format(inst, 0, plan, exact=taken % 4 == 0)
        assert taken % 4 or target.parse(text) == inst
    assert taken > 4000


def test_known_words() -> None:
    """Words from ptxas, checked by hand."""
    target = isa.target(90)
    nop = Inst("NOP", ctl=Ctl(0, 0, 7, 7, 0))
    assert target.encode(nop) == 0x000FC000000000000000000000007918
    inst = Inst(
        "IADD3", (), (reg(8), Reg("P", 0), PT), (reg(7), reg(4), RZ, NOT_PT, NOT_PT), None, ctl=Ctl(4, 1, 7, 7, 0)
    )
    assert target.format(inst) == "IADD3 R8, P0, R7, R4, RZ"
    word = target.encode(inst)
    assert word & 0xFFF == 0x210 and word >> 81 & 7 == 0 and word >> 84 & 7 == 7
    bra = target.encode(Inst("BRA", (), (), (PT, Label("L", 3)), ctl=CTL), 0x40, {3: 0x100})
    assert target.decode(bra, 0x40).srcs[1] == Imm("I", 0x100)  # type: ignore[union-attr]


def test_notes_hold_what_the_text_omits() -> None:
    """Notes hold what nvdisasm's text omits, checked by hand: a NaN's payload, which carry, a descriptor, the control
    word."""
    target = isa.target(80)
    ctl = Ctl(4, 1, 2, 7, 0b100001)
    for inst, text in (
        (
            Inst("FADD", (), (reg(1),), (reg(2), Imm("I", 0x7FC00123)), None, ctl=ctl),
            "FADD R1, R2, +QNAN  &b=0x7fc00123 &stall=4 &yield &wr=2 &req={0,5}",
        ),
        (
            Inst("IADD3", (), (reg(1), PT, Reg("P", 2)), (reg(2), reg(3), RZ, NOT_PT, NOT_PT)),
            "IADD3 R1, P2, R2, R3, RZ &Pu=0x7 &Pv=0x2",
        ),
        (
            Inst("LDG", ("E",), (PT, reg(1)), (Mem("M", reg(2, 2), None, 8, Reg("UR", 6, 0, 2)), PT)),
            "LDG.E R1, [R2.64+0x8] &m=0x6",
        ),
        (Inst("EXIT", (), (), (PT,), Reg("P", 1), ctl=Ctl(5, 0, 7, 7, 0)), "@P1 EXIT &stall=5"),
    ):
        assert target.format(inst, exact=True) == text
        assert target.parse(text) == inst
    assert target.parse("IADD3 R1, P2, R2, R3, RZ").dsts == (reg(1), Reg("P", 2), PT)


def test_shared_field() -> None:
    """Two operands of one field must agree: a barrier and its thread count in one register, a descriptor after the
    uniform base (LDGSTS)."""
    target = isa.target(80)
    good = "BAR.RED.POPC R4, R4, P0"
    assert target.format(target.parse(good)) == good
    with pytest.raises(CompileError, match="can't read"):
        target.parse("BAR.RED.POPC R4, R5, P0")
    copy = target.parse("LDGSTS.E [UR4+0x10], [R2.64]")
    assert isinstance(copy.srcs[1], Mem) and copy.srcs[1].desc == Reg("UR", 5, 0, 2)


def test_omitted_slots_get_their_defaults() -> None:
    """Omitted slots get their defaults."""
    target = isa.target(90)
    assert target.complete("IADD3", (), (reg(0),), (reg(1), reg(2), reg(3))) == (
        (reg(0), PT, PT),
        (reg(1), reg(2), reg(3), NOT_PT, NOT_PT),
    )
    dsts, srcs = target.complete("LEA", (), (reg(0),), (reg(1), reg(2), imm(4)))
    assert dsts == (reg(0), PT) and srcs == (reg(1), reg(2), RZ, imm(4), NOT_PT)
    dsts, srcs = target.complete("ISETP", ("GE", "AND"), (Reg("P", 0),), (reg(1), reg(2)))
    assert dsts == (Reg("P", 0), PT) and srcs[2:] == (PT, PT)
    with pytest.raises(CompileError, match="IADD9"):
        target.complete("IADD9", (), (reg(0),), ())


def test_instructions_without_an_encoding_are_refused() -> None:
    """An instruction that cannot be encoded is refused with its name and the reason."""
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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "FOO R1",
        "MOV R1",
        "MOV R1, R2, R3, R4",
        "@P9 MOV R1, R2",
        "LDG.E R1, [R2",
        "FADD R0, R1, x",
        "MOV \x00",
        "MOV R1, R2 &",
        "MOV R1, R2 &q=1",
        "MOV R1, R2 &b=x",
        "MOV R1, R2 &stall=99",
        "MOV R1, R2 &req={7}",
        "MOV R1, R2 &b=0xffffffff",
        "NOP &stall=1 x",
    ],
)
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


@pytest.mark.parametrize(
    ("sm", "word", "text"),
    [
        (100, 0x000FE400010000003FB8AA3B0808784A, "FMUL2 R8, R8.F32x2.HI_LO, 1.4426950216293334961"),
        (100, 0x004FC800012000093FB8AA3B04047449, "FFMA2 R4, R4.F32x2.HI_LO, R9.F32, 1.4426950216293334961"),
        (120, 0x000FCA000001500000000000000678CB, "CS2UR UR6, SR_CLOCKLO"),
        (120, 0x000FCA0000005000000000000006F8CB, "@!UPT CS2UR.32 UR6, SR_CLOCKLO"),
    ],
)
def test_words_of_ptxas(sm: int, word: int, text: str) -> None:
    """Words that ptxas 13.0 wrote (the last: two of its bits changed), with nvdisasm's text. An immediate of packed
    floats is one number for both (.F32), which is not printed."""
    target = isa.target(sm)
    inst = target.decode(word, 0)
    assert not isinstance(inst, Refusal), inst
    assert target.format(inst, 0) == text
    assert target.encode(inst, 0, {}) == word
