"""The hazard tables: complete, ordered as documented, and never above ptxas's distances."""

from __future__ import annotations

import pytest

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.hazards import hazards, load
from ir_format.hazards.classes import AS_READER
from ir_format.model import PT, Inst, Name, Reg, imm, mem
from orchestrator.api import compile_ptx
from tests import oracle
from tests.schedule import probe_latency

SMS = (75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121)


@pytest.mark.parametrize("sm", SMS)
def test_no_blank_cells(sm: int) -> None:
    """Every result of a fixed-latency class has a number for every role, every reader for every writer."""
    for (kind, file), matrix in load.matrices(sm).items():
        columns = {c.rstrip("@") for line in matrix.values() for c in line}
        for row, line in matrix.items():
            if row != "*" or kind != "raw":
                assert columns <= {c.rstrip("@") for c in line}, (kind, file, row)
            assert all(1 <= c.cycles <= 40 for c in line.values())


@pytest.mark.parametrize("sm", SMS)
def test_every_class_has_a_pipe_and_a_column(sm: int) -> None:
    pipes = load.pipes()
    raw = load.matrices(sm)[("raw", "R")]
    columns = {c for line in raw.values() for c in line}
    for entries in load.classes(sm).values():
        for _, name in entries:
            assert name in pipes
    for name in ("alu", "dual", "fma", "half"):
        assert name in columns
    for role in AS_READER.values():
        assert role in raw or role in ("uni", "call", "jump"), role


@pytest.mark.parametrize("sm", SMS)
def test_every_row_of_the_spec_has_a_class(sm: int) -> None:
    h = hazards(sm)
    t = isa.target(sm)
    missing = []
    for op in t.mnemonics():
        for row in t.rows(op):
            try:
                h.klass(Inst(op, tuple(row.fixed)))
            except CompileError:
                missing.append(row.name)
    assert not missing


def test_an_unknown_instruction_is_refused_by_name() -> None:
    with pytest.raises(CompileError, match=r"FROB\.X on sm_90"):
        hazards(90).klass(Inst("FROB", ("X",)))


def r(n: int, width: int = 1) -> Reg:
    return Reg("R", n, 0, width)


def test_known_distances() -> None:
    """A few cells by hand, from the published tables and the measurements in docs/scheduling.md."""
    add = Inst("IADD3", (), (r(0), PT, PT), (r(1), r(2), r(3)))
    ffma = Inst("FFMA", (), (r(4),), (r(0), r(5), r(6)))
    wide = Inst("IMAD", ("WIDE",), (r(8, 2), PT), (r(0), r(1), r(0, 2)))
    setp = Inst("ISETP", ("GE", "AND"), (Reg("P", 0), PT), (r(0), r(1), PT))
    guarded = Inst("MOV", (), (r(9),), (r(10),), Reg("P", 0))
    select = Inst("SEL", (), (r(9),), (r(10), r(11), Reg("P", 0)))
    store = Inst("STG", ("E",), (), (mem(r(12, 2)), r(0)))
    mufu = Inst("MUFU", ("RCP",), (r(1),), (r(0),))
    load_ = Inst("LDG", ("E",), (PT, r(0)), (mem(r(2, 2)), PT))

    def cycles(sm: int, kind: str, a: Inst, b: Inst, cell: int) -> int:
        found = hazards(sm).distance(kind, a, b, cell)
        assert found is not None
        return found.cycles

    assert [cycles(sm, "raw", add, ffma, 0) for sm in (75, 80, 90, 100, 120)] == [5] * 5
    assert [cycles(sm, "raw", add, setp, 0) for sm in (75, 80, 90, 100, 120)] == [4, 4, 4, 4, 5]
    assert [cycles(sm, "raw", setp, guarded, 512) for sm in (75, 80, 90, 120)] == [12, 13, 13, 13]
    assert [cycles(sm, "raw", setp, select, 512) for sm in (75, 80, 90, 120)] == [4, 4, 4, 5]
    assert [cycles(sm, "raw", add, store, 0) for sm in (75, 80, 90, 120)] == [8, 5, 5, 5]
    assert [cycles(sm, "raw", add, mufu, 0) for sm in (75, 80, 120)] == [6, 4, 4]
    assert [cycles(sm, "waw", add, load_, 0) for sm in (75, 80, 90, 120)] == [6] * 4
    assert cycles(80, "raw", add, wide, 0) == 5  # A and the low word of C
    assert cycles(80, "war", load_, Inst("MOV", (), (r(2),), (r(10),)), 2) == 2  # wait for the scoreboard
    assert hazards(80).distance("raw", add, store, 5) is None


def test_scoreboards_by_sm() -> None:
    """What ptxas -O0 tags (measured C2)."""
    dfma = Inst("DFMA", (), (r(0, 2),), (r(2, 2), r(4, 2), r(6, 2)))
    r2ur = Inst("R2UR", (), (PT, Reg("UR", 0)), (r(0),))
    ldgsts = Inst("LDGSTS", ("E",), (), (mem(r(0)), mem(r(2, 2))))
    assert {sm: hazards(sm).scoreboards(dfma) for sm in SMS} == {sm: "" if sm in (90, 100, 107) else "WR" for sm in SMS}
    assert {sm: hazards(sm).scoreboards(r2ur) for sm in SMS} == {sm: "WR" if sm < 90 else "" for sm in SMS}
    assert {sm: hazards(sm).scoreboards(ldgsts) for sm in SMS if sm > 75} == {
        sm: "R" if sm < 90 else "WR" for sm in SMS if sm > 75
    }
    assert hazards(80).access(Inst("S2R", (), (r(0),), (Name("N", "SR_TID.X"),))).late == 0
    assert hazards(80).scoreboards(Inst("IADD3", (), (r(0), PT, PT), (r(1), imm(2), r(3)))) == ""


@pytest.mark.oracle
@pytest.mark.parametrize("sm", (75, 80, 90, 100, 120))
def test_ptxas_never_goes_below_the_tables(sm: int) -> None:
    """A cell above ptxas's distance would give false alarms in a checker that reads the tables."""
    oracle.require("ptxas")
    seen = probe_latency.Seen()
    names = ("add", "ffma", "mad", "min", "wide", "dfma", "hfma", "cvti", "guard", "two", "ldg", "shfl")
    for cubin in probe_latency.compile_chains(sm, names=names):
        for _, words in probe_latency.text_sections(cubin):
            probe_latency.measure(words, sm, seen)
    assert len(seen.least) > 20
    assert not [line for line in probe_latency.compare(seen, sm) if line[0] == "below"]


def test_elect_may_read_its_mask() -> None:
    """The mask of elect.sync is a hidden operand (a record names its register), so ELECT reads a general register."""
    text = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 o, .param .u32 m) {\n.reg .b32 "
        "r<3>; .reg .pred p; .reg .b64 a;\n"
        "ld.param.u64 a, [o]; ld.param.u32 r0, [m]; add.u32 r0, r0, 3; elect.sync r1|p, r0; selp.u32 r2, 1, 0, p; "
        "st.global.u32 [a], r2; ret;\n}\n"
    )
    for sm in (90, 100, 120):
        assert compile_ptx(text, f"sm_{sm}")
