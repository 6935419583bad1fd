"""Each rule of the convergence checker on a few hand-written instructions; no finding for code that ptxas writes."""

from __future__ import annotations

import re

import pytest

from ir_format import isa
from ir_format.model import INV, PT, RZ, Ctl, Imm, Inst, Operand, Reg
from stages.check.convergence_checker import check_cubin
from stages.check.convergence_path import successors
from stages.check.convergence_uniform import written_below
from stages.disasm.cubin import WORD, CodeSection, Cubin
from stages.disasm.listing import decode_section

#: mnemonic, operands: names of registers, numbers, or @LABEL for the instruction of that number.
_LINE = re.compile(r"(?:@(!?)P(\d) )?([A-Z.0-9]+) ?(.*)")


def operand(text: str) -> Operand:
    if text.startswith("@"):
        return Imm("I", int(text[1:]) * WORD)
    flag = INV if text.startswith("!") else 0
    text = text.lstrip("!")
    if text == "PT":
        return PT
    if text == "RZ":
        return RZ
    if text.startswith("UR"):
        return Reg("UR", int(text[2:]), 0, 1)
    if text[0] in "PBR":
        return Reg(text[0], int(text[1:]), flag, 1)
    return Imm("I", int(text, 0))


def section(*lines: str, symbols: tuple[int, ...] = (0,), sm: int = 80) -> CodeSection:
    """A section of code; functions start at ``symbols``."""
    target = isa.target(sm)
    words = []
    for n, line in enumerate(lines):
        found = _LINE.fullmatch(line)
        assert found is not None, line
        op, *mods = found[3].split(".")
        ops = [operand(x.strip()) for x in found[4].split(",") if x.strip()]
        written = 1 if op in ("BSSY", "BMOV", "MOV") else 0
        guard = Reg("P", int(found[2]), INV if found[1] else 0, 1) if found[2] else None
        if op == "RET":
            ops[0] = Reg("R", ops[0].num, 0, 2)  # type: ignore[union-attr]
        full = target.complete(op, tuple(mods), tuple(ops[:written]), tuple(ops[written:]))
        words.append(target.encode(Inst(op, tuple(mods), full[0], full[1], guard, ctl=Ctl(5, 0, 7, 7, 0)), n * WORD))
    data = b"".join(w.to_bytes(WORD, "little") for w in words)
    return CodeSection("k", 0, data, 128, tuple((at * WORD, 0, f"f{at}", True) for at in symbols))


def kinds(*lines: str, symbols: tuple[int, ...] = (0,), sm: int = 80) -> set[str]:
    """The rules that a section of code breaks."""
    code = section(*lines, symbols=symbols, sm=sm)
    report = check_cubin(Cubin(sm, code.data, (code,)), {})
    assert report.unjudged == []
    return {f.kind for f in (*report.findings, *report.notes)}


SOUND = ("BSSY B0, @4", "@P0 BRA @3", "MOV R0, RZ", "BSYNC B0", "EXIT")


def test_sound_code_has_no_findings() -> None:
    assert kinds(*SOUND) == set()
    assert kinds("BSSY B0, @3", *SOUND[1:]) == set()  # named itself


@pytest.mark.parametrize(
    ("lines", "rules"),
    [
        (("NOP", *SOUND[1:]), {"unset"}),
        (("BSSY B0, @2", *SOUND[1:]), {"target"}),
        (("BSSY B1, @4", *SOUND[1:]), {"target", "unset"}),
        (("BSSY B0, @6", "@P0 BRA @5", "BSSY B0, @4", "BSYNC B0", "NOP", "BSYNC B0", "EXIT"), {"overwritten", "unset"}),
        (
            ("BSSY B0, @8", "BSSY B1, @6", "@P0 BRA @7", "NOP", "NOP", "BSYNC B1", "NOP", "BSYNC B0", "EXIT"),
            {"nesting", "left"},
        ),
        (
            ("BSSY B0, @6", "@P0 BRA @4", "NOP", "BRA @5", "BRA @7", "BSYNC B0", "NOP", "BAR.SYNC 0x0", "EXIT"),
            {"left", "barrier"},
        ),
        (("BSSY B0, @5", "@P0 BRA @4", "BAR.SYNC 0x0", "NOP", "BSYNC B0", "EXIT"), {"barrier"}),
        # those that stay in B1 may wait at the BSYNC of B0
        (
            (
                "BSSY B0, @8",
                "BSSY B1, @6",
                "@P0 BREAK B1",
                "@P0 BRA @7",
                "NOP",
                "BSYNC B1",
                "BRA @8",
                "BAR.SYNC 0x0",
                "BSYNC B0",
                "EXIT",
            ),
            {"barrier"},
        ),
        # a loop with a barrier that some leave before others
        (
            (
                "BSSY B0, @7",
                "BAR.SYNC 0x0",
                "BSSY B1, @5",
                "@P0 BRA @5",
                "NOP",
                "BSYNC B1",
                "@P1 BRA @1",
                "BSYNC B0",
                "EXIT",
            ),
            {"barrier"},
        ),
        # right only if WARPSYNC releases those that wait at the BSYNC
        (("BSSY B0, @5", "@P0 BRA @4", "WARPSYNC 0xffffffff", "BAR.SYNC 0x0", "BSYNC B0", "EXIT"), {"warpsync"}),
        (
            (
                "BSSY B0, @6",
                "@P0 BRA @4",
                "NOP",
                "BRA @5",
                "BRA @7",
                "BSYNC B0",
                "EXIT",
                "WARPSYNC 0xffffffff",
                "BAR.SYNC 0x0",
                "EXIT",
            ),
            {"warpsync"},
        ),
    ],
)
def test_broken_code_breaks_its_rule(lines: tuple[str, ...], rules: set[str]) -> None:
    assert kinds(*lines) == rules


@pytest.mark.parametrize(
    "lines",
    [
        # all leave the loop at once: those that were apart in it have met at B1
        (
            "BSSY B0, @7",
            "BAR.SYNC 0x0",
            "BSSY B1, @5",
            "@P0 BRA @5",
            "NOP",
            "BSYNC B1",
            "@P1 BRA.U @1",
            "BSYNC B0",
            "EXIT",
        ),
        # threads leave by BREAK under the predicate of the branch, or under two
        ("BSSY B0, @8", "BSSY B1, @6", "@P0 BREAK B1", "@P0 BRA @7", "NOP", "BSYNC B1", "NOP", "BSYNC B0", "EXIT"),
        (
            "BSSY B0, @8",
            "BSSY B1, @6",
            "@P0 BREAK !P1, B1",
            "@P0 BRA !P1, @7",
            "NOP",
            "BSYNC B1",
            "NOP",
            "BSYNC B0",
            "EXIT",
        ),
        # the barrier of the block precedes the branch
        ("BSSY B0, @5", "BAR.SYNC 0x0", "@P0 BRA @4", "NOP", "BSYNC B0", "EXIT"),
        # a barrier of some threads inside
        ("BSSY B0, @5", "@P0 BRA @4", "BAR.SYNC 0x1, 0x40", "NOP", "BSYNC B0", "EXIT"),
        # a jump that is written as a call and never returns
        ("BSSY B0, @6", "@P0 BRA @5", "@P1 CALL.REL.NOINC @5", "BRA @2", "NOP", "BSYNC B0", "EXIT"),
        # threads that exit need not leave first
        ("BSSY B0, @5", "@P0 EXIT", "@P1 BRA @4", "NOP", "BSYNC B0", "EXIT"),
    ],
)
def test_as_ptxas_writes_it(lines: tuple[str, ...]) -> None:
    assert kinds(*lines) == set()


def test_the_predicate_must_be_the_same() -> None:
    """The BREAK is under one predicate, the branch under another: some threads leave the region without it."""
    lines = ("BSSY B0, @8", "BSSY B1, @6", "@P1 BREAK B1", "@P0 BRA @7", "NOP", "BSYNC B1", "NOP", "BSYNC B0", "EXIT")
    assert kinds(*lines) == {"nesting", "left"}


def test_barriers_across_calls() -> None:
    """A function may use B0 without saving it; a barrier open across its call must be another one or be saved."""
    inside = ("BSSY B0, @9", "@P0 BRA @8", "NOP", "BSYNC B0", "RET.REL.NODEC R20, @0")
    assert kinds("BSSY B6, @4", "@P0 BRA @3", "CALL.REL.NOINC @5", "BSYNC B6", "EXIT", *inside, symbols=(0, 5)) == set()
    assert kinds("BSSY B0, @4", "@P0 BRA @3", "CALL.REL.NOINC @5", "BSYNC B0", "EXIT", *inside, symbols=(0, 5)) == {
        "call"
    }
    saving = (
        "BMOV.32.CLEAR R19, B6",
        "BSSY B6, @5",
        "@P0 BRA @4",
        "NOP",
        "BSYNC B6",
        "BMOV.32 B6, R19",
        "RET.REL.NODEC R20, @0",
    )
    assert kinds(*saving) == set()
    assert kinds(*saving[:5], "NOP", saving[6]) == {"saved"}


def test_a_loop_that_yields() -> None:
    lines = ("BSSY{} B0, @5", "YIELD", "MOV R0, RZ", "@P0 BRA @1", "BSYNC{} B0", "EXIT")
    assert kinds(*(x.format("") for x in lines), sm=100) == set()
    assert kinds(*(x.format(".RECONVERGENT") for x in lines), sm=100) == {"spin"}
    voting = (lines[0].replace("@5", "@6"), "YIELD", "BRA.DIV UR4, @2", "MOV R0, RZ", *lines[3:])
    assert kinds(*(x.format(".RECONVERGENT") for x in voting), sm=100) == set()  # all threads of a vote are here
    assert "kind" in kinds(lines[0].format(".RECONVERGENT"), *(x.format("") for x in lines[1:]), sm=100)


def test_a_call_changes_what_its_function_writes() -> None:
    """A loop around a helper function keeps its counter, so that its branch is that of the whole warp."""
    lines = (
        "CALL.REL.NOINC @3",
        "MOV R9, RZ",
        "EXIT",
        "MOV R5, RZ",
        "@P0 BRA @6",
        "MOV R7, RZ",
        "RET.REL.NODEC R2, 0x0",
    )
    code = section(*lines, symbols=(0, 3))
    items = decode_section(code, isa.target(80))
    succs = [successors(n, item, {}, len(items)) for n, item in enumerate(items)]
    assert written_below(items, succs, 0, {}) == 1 << 5 | 1 << 7
