"""The engine on hand-made instructions: divergence, barriers, limits, faults, and the timed machine."""

from __future__ import annotations

import numpy as np
import pytest

from ir_format.model import INV, PT, REUSE, RZ, Ctl, Imm, Inst, Mem, Name, Reg, cbank, imm
from orchestrator.api import compile_ptx
from stages.simulate import Device, SimError
from tests.simulate.minicubin import at, device, p, prologue, r, store

EXIT = Inst("EXIT")


def run(insts: list[Inst], n: int = 32, block: int = 32, grid: int = 1, **options: object) -> np.ndarray:
    """The words that the kernel stored."""
    out = np.zeros(n, np.uint32)
    device(insts, **({"shared": options.pop("static")} if "static" in options else {})).launch(
        "k", grid, block, [out], **options
    )
    return out


def test_lanes_and_constants() -> None:
    insts = [*prologue(), Inst("IADD3", (), (r(5),), (r(0), imm(-1), RZ)), store(5), EXIT]
    assert list(run(insts)) == [(i - 1) & 0xFFFFFFFF for i in range(32)]


def test_plop3_of_signs() -> None:
    """PLOP3 of the signs of a register and of a word of a constant bank (a table of a and not b: 0x30)."""
    signs = (
        r(5)._replace(mod="SIGN"),
        cbank(0, 0x164)._replace(mod="SIGN"),
        RZ._replace(mod="SIGN"),
        Imm("I", 0x30),
        Imm("I", 0),
    )
    insts = [
        *prologue(),
        Inst("IADD3", (), (r(5),), (r(0), imm(-16), RZ)),
        Inst("PLOP3", ("LUT",), (p(0), PT), signs),
        Inst("SEL", (), (r(6),), (r(0), RZ, p(0))),
        store(6),
        EXIT,
    ]
    assert list(run(insts)) == [i if i < 16 else 0 for i in range(32)]


def test_plop3_of_predicates_and_signs() -> None:
    """PLOP3 and UPLOP3 take signs in the last place but one, in the last two or in all three places."""
    ur, up = (lambda n: Reg("UR", n, 0, 1)), (lambda n: Reg("UP", n, 0, 1))
    sign = {n: ur(n)._replace(mod="SIGN") for n in (4, 5)}  # UR4 is negative, UR5 is not
    always = Reg("UP", PT.num, 0, 1)
    wanted = {  # a, b, c: a and b, but not c (0x40)
        (always, sign[4], always._replace(flags=INV)): 1,
        (always, sign[5], always._replace(flags=INV)): 0,
        (always, sign[4], sign[5]): 1,
        (always, sign[4], sign[4]): 0,
        (sign[4], sign[4], sign[5]): 1,
        (sign[5], sign[4], sign[5]): 0,
    }
    for operands, bit in wanted.items():
        test = Inst("UPLOP3", ("LUT",), (up(2), always), (*operands, Imm("I", 0x40), Imm("I", 0)))
        insts = [
            *prologue(), Inst("UMOV", (), (ur(4),), (imm(-7),)), Inst("UMOV", (), (ur(5),), (imm(7),)), test,
            Inst("USEL", (), (ur(6),), (ur(4), ur(5), up(2))), Inst("IADD3", (), (r(5),), (RZ, ur(6), RZ)),
            store(5), EXIT,
        ]  # fmt: skip
        assert set(run(insts)) == {0xFFFFFFF9 if bit else 7}, operands
    both = (PT, r(5)._replace(mod="SIGN"), RZ._replace(mod="SIGN"), Imm("I", 0x40), Imm("I", 0))
    insts = [
        *prologue(), Inst("IADD3", (), (r(5),), (r(0), imm(-16), RZ)), Inst("PLOP3", ("LUT",), (p(0), PT), both),
        Inst("SEL", (), (r(6),), (r(0), RZ, p(0))), store(6), EXIT,
    ]  # fmt: skip
    assert list(run(insts)) == [i if i < 16 else 0 for i in range(32)]


def test_uniform_predicates_to_words_and_back() -> None:
    """UP2UR reads only the uniform predicates; UR2UP writes them."""
    ur, up = (lambda n: Reg("UR", n, 0, 1)), (lambda n: Reg("UP", n, 0, 1))
    names, zero = Name("N", "UPR"), Reg("UR", RZ.num, 0, 1)
    insts = [
        *prologue(),
        Inst("ISETP", ("LT", "AND"), (p(0), PT), (r(0), imm(7), PT)),
        Inst("UMOV", (), (ur(4),), (imm(6),)),
        Inst("UR2UP", (), (names,), (ur(4), imm(7))),
        Inst("UP2UR", (), (ur(5),), (names, zero, imm(5))),
        Inst("IADD3", (), (r(5),), (RZ, ur(5), RZ)),
        Inst("SEL", (), (r(6),), (r(5), RZ, p(0))),
        Inst("SEL", (), (r(5),), (r(6), r(0), up(2))),
        store(5),
        EXIT,
    ]
    assert list(run(insts)) == [4] * 7 + [0] * 25


def test_uniform_choices_of_64_bits() -> None:
    """USEL.64 between pairs, and with a signed number of 33 bits (as SEL.64)."""
    pair, up = (lambda n: Reg("UR", n, 0, 2)), Reg("UP", 0, 0, 1)
    words = [Inst("UMOV", (), (Reg("UR", 4 + n, 0, 1),), (imm(value),)) for n, value in enumerate((5, 6, 7, 8))]
    for flags, number, want in (
        (0, 0x1FFFFFFFC, (5, 6)),
        (INV, 0x1FFFFFFFC, (0xFFFFFFFC, 0xFFFFFFFF)),
        (INV, 0xFFFFFFFC, (0xFFFFFFFC, 0)),
    ):
        for other in (pair(6), Imm("I", number)):
            chosen = want if type(other) is Imm or not flags else (7, 8)
            for n, word in enumerate(chosen):
                insts = [
                    *prologue(), *words,
                    Inst("UR2UP", (), (Name("N", "UPR"),), (Reg("UR", 4, 0, 1), imm(1))),
                    Inst("USEL", ("64",), (pair(8),), (pair(4), other, up._replace(flags=flags))),
                    Inst("IADD3", (), (r(5),), (RZ, Reg("UR", 8 + n, 0, 1), RZ)), store(5), EXIT,
                ]  # fmt: skip
                assert set(run(insts)) == {word}


def test_uniform_narrow_integers() -> None:
    """UI2I: a word clamped to 8 or 16 bits, with its sign (as I2I)."""
    ur = [Reg("UR", n, 0, 1) for n in range(6)]
    for kind, word in (("U8", 0), ("S8", 0xFFFFFF80), ("U16", 0), ("S16", 0xFFFFFED4)):
        insts = [
            *prologue(), Inst("UMOV", (), (ur[4],), (imm(-300),)),
            Inst("UI2I", (kind, "S32", "SAT"), (ur[5],), (ur[4],)),
            Inst("IADD3", (), (r(5),), (RZ, ur[5], RZ)), store(5), EXIT,
        ]  # fmt: skip
        assert set(run(insts)) == {word}, kind


def test_uniform_packed_bytes() -> None:
    """UI2IP: two words as clamped bytes, the second one lowest, below bytes of the third (as I2IP)."""
    ur = [Reg("UR", n, 0, 1) for n in range(10)]

    def code(c: Reg) -> list[Inst]:
        return [
            *prologue(),
            *(Inst("UMOV", (), (ur[4 + n],), (imm(value),)) for n, value in enumerate((300, -1, 0x56781234))),
            Inst("UI2IP", ("U8", "S32", "SAT"), (ur[8],), (ur[4], ur[5], ur[6])),
                Inst("UI2IP", ("S8", "S32", "SAT"), (ur[9],), (ur[4], imm(5), c)),
            Inst("ISETP", ("LT", "AND"), (p(0), PT), (r(0), imm(7), PT)), Inst("IADD3", (), (r(5),), (RZ, ur[9], RZ)),
                Inst("SEL", (), (r(6),), (r(5), ur[8], p(0))), store(6), EXIT,
        ]  # fmt: skip

    assert [int(x) for x in run(code(ur[6]))[[0, 31]]] == [0x12347F05, 0x1234FF00]
    upper = run(code(ur[6]._replace(mod="H1")))  # .H1: the upper half of the third is what lies above
    assert [int(x) for x in upper[[0, 31]]] == [0x56787F05, 0x1234FF00]


def test_partial_warp_and_many_blocks() -> None:
    out = np.zeros(40, np.uint32)
    device([*prologue(), store(0), EXIT]).launch("k", 3, 40, [out])
    assert list(out) == list(range(40))


def diverge(sync: bool) -> list[Inst]:
    """Odd lanes skip an add; then every lane stores the ballot of its group."""
    body = [*prologue(), Inst("LOP3", ("LUT",), (p(0), RZ), (r(0), imm(1), RZ, imm(0xC0), Reg("P", -1, 0, 1, INV)))]
    if sync:
        body.append(Inst("BSSY", (), (Reg("B", 0),), (at(0),)))
    start = len(body)
    tail = start + 2
    body += [
        Inst("BRA", (), (), (at(tail),), guard=p(0)),
        Inst("NOP"),
    ]
    if sync:
        body.append(Inst("BSYNC", (), (), (Reg("B", 0),)))
    body += [Inst("VOTE", ("ANY",), (r(5), PT), (PT,)), store(5), EXIT]
    return body


def test_without_bsync_the_groups_stay_diverged() -> None:
    got = run(diverge(False))
    assert set(got[0::2]) == {0x55555555} and set(got[1::2]) == {0xAAAAAAAA}


def test_bsync_joins_the_groups() -> None:
    assert set(run(diverge(True))) == {0xFFFFFFFF}


def test_exclusive_warpsync_splits_lanes_of_other_masks() -> None:
    """REDUX over the active lanes: over each mask separately after WARPSYNC.EXCLUSIVE, over all without it."""

    def code(*wait: Inst) -> list[Inst]:
        ur = Reg("UR", 4, 0, 1)
        return [
            *prologue(),
            Inst("ISETP", ("LT", "AND"), (p(0), PT), (r(0), imm(5), PT)),
            Inst("SEL", (), (r(6),), (imm(0x1F), imm(-0x20), p(0))),
            Inst("BSSY", (), (Reg("B", 0, 0, 1),), (at(8 + len(wait)),)),
            *wait,
            Inst("REDUX", ("SUM",), (ur,), (r(0),)),
            Inst("IADD3", (), (r(5),), (RZ, ur, RZ)),
            Inst("BSYNC", (), (), (Reg("B", 0, 0, 1),)),
            store(5),
            EXIT,
        ]

    assert list(run(code())) == [496] * 32
    assert list(run(code(Inst("WARPSYNC", ("EXCLUSIVE",), (), (r(6),))))) == [10] * 5 + [486] * 27


def test_shared_memory_and_barrier() -> None:
    insts = [
        *prologue(),
        Inst("IMAD", ("SHL", "U32"), (r(6),), (r(0), imm(4), RZ)),
        Inst("STS", (), (), (Mem("M", r(6)), r(0))),
        Inst("BAR", ("SYNC",), (), (imm(0),)),
        Inst("IADD3", (), (r(7),), (r(6, 1, 1), imm(4 * 63), RZ)),
        Inst("LDS", (), (r(5),), (Mem("M", r(7)),)),
        store(5),
        EXIT,
    ]
    assert list(run(insts, 64, 64, static=256)) == list(range(63, -1, -1))


def test_one_warp_short_of_a_barrier_is_a_deadlock() -> None:
    insts = [
        *prologue(),
        Inst("ISETP", ("GE", "AND"), (p(0), PT), (r(0), imm(32), PT)),
        Inst("BAR", ("SYNC",), (), (imm(0), imm(96))),
        EXIT,
    ]
    with pytest.raises(
        SimError,
        match=(
            r"deadlock: 64 threads at barrier 0 \(64 of 96 threads\), SASS 0x0040.*: "
            r"warp 0 of block \(0,0,0\) lanes 0xffffffff, warp 1 of block"
        ),
    ):
        run(insts, 64, 64)


def test_endless_loop_hits_the_limit() -> None:
    with pytest.raises(SimError, match="instruction limit of 1000"):
        run([Inst("BRA", (), (), (at(0),))], limit=1000)


def test_out_of_bounds_names_the_instruction() -> None:
    insts = [*prologue(), store(0, offset=4), EXIT]
    with pytest.raises(
        SimError,
        match=(
            r"out-of-bounds global write of 4 bytes at .*\(128 bytes into 'argument 0' of 128 bytes.*SASS "
            r"0x0030.*thread \(31,0,0\)"
        ),
    ):
        run(insts)


def test_misaligned_access() -> None:
    with pytest.raises(SimError, match="misaligned global write of 4 bytes"):
        run([*prologue(), store(0, offset=2), EXIT], 64)


def test_unknown_instruction_is_refused_by_name() -> None:
    with pytest.raises(SimError, match=r"instruction TEX\.B\.LL is not supported"):
        run([Inst("TEX", ("B", "LL"), (r(0),), (r(0),)), EXIT])


def test_unknown_modifier_is_refused() -> None:
    with pytest.raises(SimError, match="FOO"):
        run([*prologue(), Inst("IADD3", ("FOO",), (r(5),), (r(0), RZ, RZ)), EXIT])


def test_undecodable_word_is_reported() -> None:
    with pytest.raises(SimError, match="ran off the end"):
        run([Inst("NOP")])


def test_uninitialised_registers_depend_on_the_seed() -> None:
    insts = [*prologue(), store(9), EXIT]
    first, again, other = run(insts, seed=1), run(insts, seed=1), run(insts, seed=2)
    assert (first == again).all() and (first != other).any()


@pytest.mark.parametrize("bad", [[np.zeros(4, np.float32), np.int32(1)], [], [np.int32(1)]])
def test_wrong_arguments(bad: list[object]) -> None:
    with pytest.raises(SimError, match="argument"):
        device([EXIT]).launch("k", 1, 32, bad)


def test_wrong_launch() -> None:
    dev = device([EXIT], params=())
    with pytest.raises(SimError, match="no kernel 'missing'"):
        dev.launch("missing", 1, 32)
    with pytest.raises(SimError, match="1056 threads"):
        dev.launch("k", 1, 1056)
    with pytest.raises(SimError, match="bad extent"):
        dev.launch("k", 0, 32)


# --- timing ----------------------------------------------------------------------------------------------------


def ctl(stall: int, wr: int = 7, rd: int = 7, wait: int = 0) -> Ctl:
    return Ctl(stall, 0, wr, rd, wait)


def timed(distance: int) -> list[Inst]:
    """R5 = 7 (old), then R5 = tid, read by an add ``distance`` cycles later."""
    head = prologue()
    head[0].ctl = ctl(2, wr=0)
    head[1].ctl = ctl(6)
    head[2].ctl = ctl(6, wait=1)
    return [
        *head,
        Inst("IADD3", (), (r(5),), (RZ, imm(7), RZ), ctl=ctl(6)),
        Inst("IADD3", (), (r(5),), (r(0), RZ, RZ), ctl=ctl(distance)),
        Inst("IADD3", (), (r(6),), (r(5), imm(100), RZ), ctl=ctl(6)),
        Inst("STG", ("E",), (), (Mem("M", r(2, 2)), r(6)), ctl=ctl(4)),
        Inst("EXIT", ctl=ctl(5)),
    ]


def test_a_value_read_too_early_is_the_old_one() -> None:
    assert list(run(timed(4), strict=True)) == [i + 100 for i in range(32)]
    assert list(run(timed(3), strict=True)) == [107] * 32
    assert list(run(timed(3))) == [i + 100 for i in range(32)]


def test_the_hazard_is_reported() -> None:
    out = np.zeros(32, np.uint32)
    stats = device(timed(2)).launch("k", 1, 32, [out], strict=True)
    assert len(stats.hazards) == 1
    assert (
        "R5 of SASS 0x0040" in stats.hazards[0]
        and "read too early by SASS 0x0050" in stats.hazards[0]
        and "2 cycles later" in stats.hazards[0]
    )
    assert not device(timed(4)).launch("k", 1, 32, [out], strict=True).hazards


def loaded(wait: int) -> list[Inst]:
    """Load a word, add 1, store it back; the add waits for the scoreboard or not."""
    head = timed(4)[:3]
    return [
        *head,
        Inst("MOV", (), (r(5),), (imm(50),), ctl=ctl(6)),
        Inst("LDG", ("E",), (r(5),), (Mem("M", r(2, 2)),), ctl=ctl(4, wr=1)),
        Inst("IADD3", (), (r(6),), (r(5), imm(1), RZ), ctl=ctl(6, wait=wait)),
        Inst("STG", ("E",), (), (Mem("M", r(2, 2)), r(6)), ctl=ctl(4)),
        Inst("EXIT", ctl=ctl(5)),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_a_load_needs_its_scoreboard(seed: int) -> None:
    assert list(run(loaded(2), strict=True, seed=seed)) == [1] * 32
    assert list(run(loaded(0), strict=True, seed=seed)) == [51] * 32


def overwritten(rd: int, wait: int) -> list[Inst]:
    """Store R0, then overwrite R0: the second must wait until the store has read it."""
    head = timed(4)[:3]
    return [
        *head,
        Inst("STG", ("E",), (), (Mem("M", r(2, 2)), r(0)), ctl=ctl(1, rd=rd)),
        Inst("MOV", (), (r(0),), (imm(999),), ctl=ctl(6, wait=wait)),
        Inst("EXIT", ctl=ctl(5)),
    ]


def test_overwriting_a_store_operand_needs_the_read_scoreboard() -> None:
    assert list(run(overwritten(3, 8), strict=True, seed=2)) == list(range(32))
    assert list(run(overwritten(7, 0), strict=True, seed=2)) == [999] * 32


@pytest.mark.parametrize("seed", range(8))
def test_a_wait_covers_results_issued_after_stores_that_read_late(seed: int) -> None:
    """A special register and a load after stores whose sources have not been read yet (and would be written by an
    instruction that never runs), each with a wait of its own."""
    insts = [
        *timed(4)[:3],
        *[Inst("STG", ("E",), (), (Mem("M", r(2, 2), None, 512), r(0)), ctl=ctl(1, rd=4)) for _ in range(3)],
        Inst("S2R", (), (r(6),), (Name("N", "SR_TID.X"),), ctl=ctl(1, wr=1)),
        Inst("LDS", (), (r(5),), (Mem("M", None, None, 0),), ctl=ctl(1, wr=2)),
        Inst("IADD3", (), (r(6),), (r(6), imm(3), RZ), ctl=ctl(6, wait=2)),
        Inst("IADD3", (), (r(5),), (r(5), RZ, RZ), ctl=ctl(6, wait=4)),
        Inst("MOV", (), (r(0),), (imm(9),), PT._replace(flags=INV), ctl=ctl(6)),
        Inst("STG", ("E",), (), (Mem("M", r(2, 2)), r(6)), ctl=ctl(4)),
        Inst("EXIT", ctl=ctl(5)),
    ]
    out = np.zeros(256, np.uint32)
    assert not device(insts).launch("k", 1, 32, [out], strict=True, seed=seed, shared=64).hazards
    assert out[:32].tolist() == [i + 3 for i in range(32)]


def test_a_load_that_lands_after_a_younger_write() -> None:
    head = timed(4)[:3]
    insts = [
        *head,
        Inst("LDG", ("E",), (r(5),), (Mem("M", r(2, 2)),), ctl=ctl(4, wr=1)),
        Inst("MOV", (), (r(5),), (imm(77),), ctl=ctl(15)),
        Inst("NOP", ctl=ctl(15, wait=2)),
        Inst("STG", ("E",), (), (Mem("M", r(2, 2)), r(5)), ctl=ctl(4)),
        Inst("EXIT", ctl=ctl(5)),
    ]
    assert list(run(insts, strict=True, seed=2)) == [0] * 32
    assert list(run(insts)) == [77] * 32


def test_depbar_waits_for_all_but_n() -> None:
    def insts(n: int) -> list[Inst]:
        loads = [Inst("LDS", (), (r(10 + i),), (Mem("M", None, None, 4 * i),), ctl=ctl(4, wr=2)) for i in range(3)]
        return [
            *timed(4)[:3],
            Inst("STS", (), (), (Mem("M", None, None, 8), RZ), ctl=ctl(15)),
            Inst("MOV", (), (r(12),), (imm(5),), ctl=ctl(15)),
            *loads,
            Inst("DEPBAR", ("LE",), (), (Name("N", "SB2"), imm(n)), ctl=ctl(4)),
            Inst("IADD3", (), (r(6),), (r(12), RZ, RZ), ctl=ctl(6)),
            Inst("STG", ("E",), (), (Mem("M", r(2, 2)), r(6)), ctl=ctl(4)),
            Inst("EXIT", ctl=ctl(5)),
        ]

    assert list(run(insts(0), static=64, strict=True, seed=2)) == [0] * 32
    stats = device(insts(1), shared=64).launch("k", 1, 32, [np.zeros(32, np.uint32)], strict=True, seed=4)
    assert any("R12" in h for h in stats.hazards) or not stats.hazards  # the third load may return with the second


def test_a_planted_reuse_bit_gives_the_old_value() -> None:
    def insts(flags: int) -> list[Inst]:
        return [
            *timed(4)[:3],
            Inst("IADD3", (), (r(0),), (r(0, 1, flags), imm(10), RZ), ctl=ctl(6)),
            Inst("IADD3", (), (r(6),), (r(0), imm(1000), RZ), ctl=ctl(6)),
            Inst("STG", ("E",), (), (Mem("M", r(2, 2)), r(6)), ctl=ctl(4)),
            Inst("EXIT", ctl=ctl(5)),
        ]

    assert list(run(insts(0), strict=True)) == [i + 1010 for i in range(32)]
    assert list(run(insts(REUSE), strict=True)) == [i + 1000 for i in range(32)]


def test_cycles_name_the_waiting_instruction() -> None:
    out = np.zeros(32, np.uint32)
    stats = device(loaded(2)).launch("k", 1, 32, [out], cycles=True)
    rows = {row[1]: row for row in stats.cycles["instructions"]}  # type: ignore[attr-defined]
    assert rows[0x50][2] == "IADD3" and rows[0x50][6] > 100 > rows[0x60][6]


def test_immediates_of_other_kinds() -> None:
    # PRMT takes bytes of {c, a}; a selector with the top bit of a nibble replicates the sign.
    insts = [*prologue(), Inst("PRMT", (), (r(5),), (imm(0x80C0), Imm("I", 0x9910), RZ)), store(5), EXIT]
    assert set(run(insts)) == {0xFFFF80C0}


def test_an_integer_of_64_bits_in_a_field_of_32_is_its_upper_half() -> None:
    insts = [*prologue(), Inst("I2F", ("F64", "U64", "RZ"), (r(6, 2),), (imm(0xFFFFFFFF),)), store(7), EXIT]
    assert list(run(insts)) == [0x43EFFFFF] * 32


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_upper_bytes_of_a_dot_product_are_no_upper_half(arch: str) -> None:
    """IDP.2A.HI is as fast as any dot product: a product right after it reads its result."""
    text = (
        f".version 8.0\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 a, "
        f".param .u64 b)\n{{ .reg .b64 %p, %q, %o; .reg .b32 %t, %x, %y, %z; .reg .pred %c;\n"
        "ld.param.u64 %p, [a]; ld.param.u64 %q, [b]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 8; "
        "add.s64 %p, %p, %o; mul.wide.u32 %o, %t, 4; add.s64 %q, %q, %o;\n"
        "ld.global.b32 %x, [%p]; ld.global.b32 %y, [%p+4]; setp.gt.u32 %c, %x, 99;\n"
        "mov.b32 %z, %x; @%c dp2a.hi.u32.u32 %z, %x, %y, %t; mul.hi.u32 %z, %z, 0x80000001; "
        "st.global.b32 [%q], %z; ret; }\n"
    )
    put = np.random.default_rng(3).integers(0, 1 << 32, (32, 2), dtype=np.uint32)
    put[::3, 0] %= 99
    want = []
    for t, (x, y) in enumerate(put.tolist()):
        z = ((x & 0xFFFF) * (y >> 16 & 0xFF) + (x >> 16) * (y >> 24) + t) & 0xFFFFFFFF if x > 99 else x
        want.append(z * 0x80000001 >> 32)
    cubin = compile_ptx(text, arch)
    for seed in range(4):
        got = np.zeros(32, np.uint32)
        Device(cubin).launch("k", 1, 32, [put, got], strict=True, seed=seed)
        assert got.tolist() == want
