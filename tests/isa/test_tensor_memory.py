"""Tensor memory rows: known words, and a sample of ptxas's output."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ir_format import isa
from ir_format.model import Inst
from tests import oracle
from tests.isa.corpus_tcgen05 import TENSOR_MEMORY

#: Words that ptxas 13.0 wrote for sm_100a (LDTM.STAT: sm_103a), and nvdisasm's text.
WORDS = (
    (
        100,
        0x0001D8000C000006_00FF040A080075EA,
        "UTCHMMA gdesc[UR8], gdesc[UR10], tmem[UR6], tmem[UR4], idesc[UR5], !UP0",
    ),
    (
        100,
        0x0001D80008007806_0008040E0C0075EA,
        "UTCHMMA gdesc[UR12], gdesc[UR14], tmem[UR6], tmem[UR4], idesc[UR5], UR8, UP0, 0xf",
    ),
    (
        100,
        0x0001D80008202C06_00FF0408070079EA,
        "UTCHMMA.2CTA.ASHIFT tmem[UR7], gdesc[UR8], tmem[UR6], tmem[UR4], idesc[UR5], UP0, 0x5",
    ),
    (
        110,
        0x0001D800080F8106_000C040A080075EA,
        "UTCIMMA.WS gdesc[UR8], gdesc[UR10].B_REUSE.B_KEEP.BUFFER3, tmem[UR6], tmem[UR4], idesc[UR5], UR12, UP0",
    ),
    (
        100,
        0x0001D80008500306_0008040C0A007DEA,
        "UTCQMMA gdesc[UR10].A_REUSE.A_KEEP, gdesc[UR12], tmem[UR6], tmem[UR4], idesc[UR5], tmem[UR8], UP0",
    ),
    (
        100,
        0x0001D80008200006_8008040C0A0075EA,
        "UTCOMMA.2CTA.4X gdesc[UR10], gdesc[UR12], tmem[UR6], tmem[UR4], idesc[UR5], tmem[UR8], UP0",
    ),
    (
        103,
        0x0001D80008000006_8008040C0A0075EA,
        "UTCOMMA.BLOCK16 gdesc[UR10], gdesc[UR12], tmem[UR6], tmem[UR4], idesc[UR5], tmem[UR8], UP0",
    ),
    (100, 0x0001D80008200805_000000FF040073E9, "UTCBAR.2CTA.MULTICAST [UR4], URZ, UR5"),
    (100, 0x000E240008200800_00000004000575E3, "UTCATOMSWS.2CTA.FIND_AND_SET.ALIGN UP0, UR5, UR4"),
    (100, 0x0007E20008000000_0000000500FF79E3, "UTCATOMSWS.AND URZ, UR5"),
    (100, 0x000FD80008210000_00002000040079E6, "UTCSHIFT.2CTA.DOWN tmem[UR4+0x20]"),
    (100, 0x0001D80008390000_00000006040079E7, "UTCCP.T.S.2CTA.128dp128bit.U4x16P64 tmem[UR4], gdesc[UR6]"),
    (100, 0x008FE20008B90004_00000004000079ED, "STTM.16dp32bit_t0_t15.x128.EXPAND16BIT tmem[UR4], R4"),
    (100, 0x000E220008BB0000_00001004000479EE, "LDTM.16dp32bit_t16_t31.x128.PACK16BIT R4, tmem[UR4+0x10]"),
    (103, 0x000FE20008900009_00000004070875EE, "LDTM.STAT.16dp32bit_t0_t15.x4.MIN.S32 R7, R8, tmem[UR4]"),
    (100, 0x000FE80000000000_000000800000784C, "UVIRTCOUNT.DEALLOC.SMPOOL 0x80"),
)


@pytest.mark.parametrize(("sm", "word", "text"), WORDS, ids=[w[2].split(" ")[0] for w in WORDS])
def test_known_words(sm: int, word: int, text: str) -> None:
    """Decode, print, parse, encode."""
    target = isa.target(sm)
    inst = target.decode(word)
    assert isinstance(inst, Inst), inst
    assert target.format(inst) == text
    again = target.parse(text)
    assert (again.op, again.mods, again.dsts, again.srcs, again.guard) == (
        inst.op,
        inst.mods,
        inst.dsts,
        inst.srcs,
        inst.guard,
    )
    assert target.encode(inst) == word


def test_widths() -> None:
    """Registers of a load: columns times rows of the shape, divided over the warp."""
    target = isa.target(100)
    for text, width in (
        ("LDTM.x32 R4, tmem[UR4]", 32),
        ("LDTM.16dp256bit.x8 R4, tmem[UR4]", 32),
        ("LDTM.16dp64bit R4, tmem[UR4]", 1),
    ):
        assert target.parse(text).dsts[0].width == width  # type: ignore[union-attr]
    stat = isa.target(110).parse("LDTM.STAT.x16.MAXABS.F32.NAN R3, R4, tmem[UR4]")
    assert [d.width for d in stat.dsts] == [1, 16]  # type: ignore[union-attr]


def test_other_targets_refuse() -> None:
    """sm_90 and sm_120 have none of it, sm_103 no byte products."""
    for sm in (90, 120):
        assert not isa.target(sm).decode(WORDS[0][1])
    assert not isa.target(103).decode(WORDS[3][1])


@pytest.mark.oracle
@pytest.mark.parametrize("sm", ["100a", "103a", "110a"])
def test_sample_of_ptxas(sm: str, tmp_path: Path) -> None:
    """Every 90th kernel of the family: text and bits of every word, and a silent schedule check."""
    oracle.require("ptxas", "nvdisasm")
    from stages.check.schedule_checker import check_bytes
    from tests.isa import coverage
    from tests.isa.corpus import HEAD

    ptxas = str(oracle.find("ptxas"))
    good = 0
    for k, body in enumerate(TENSOR_MEMORY[::90]):
        source = tmp_path / "in.ptx"
        source.write_text(HEAD.format(version="9.0", sm=sm) + body.replace("NAME", "k"))
        good += (
            subprocess.run(
                [ptxas, f"-arch=sm_{sm}", str(source), "-o", str(tmp_path / f"{k}.cubin")],
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )
    assert good > 35
    report = coverage.check(coverage.distinct_words([tmp_path]), sm)
    assert not report.examples
    for cubin in sorted(tmp_path.glob("*.cubin")):
        found = check_bytes(cubin.read_bytes())
        assert not found.findings
        assert not found.unjudged
