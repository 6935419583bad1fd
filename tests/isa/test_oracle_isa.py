"""The rows against nvdisasm and ptxas: small samples; `tests.isa.coverage` and `tests.isa.generate` run the big ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ir_format import isa
from stages.disasm.assemble import assemble
from stages.disasm.cubin import CubinError, patch_cubin, read_cubin
from stages.disasm.lift import lift, relowered
from stages.disasm.listing import print_cubin
from tests import oracle
from tests.isa.corpus import compile_all
from tests.isa.coverage import check, distinct_words, spaces
from tests.isa.generate import random_words
from tests.isa.probe import texts

pytestmark = pytest.mark.oracle
KERNELS = Path(__file__).parents[1] / "kernels" / "ptx"


@pytest.mark.parametrize("sm", ["75", "80", "90", "120"])
def test_corpus(sm: str, tmp_path: Path) -> None:
    """A family of one-operation kernels: text and bits of every word."""
    oracle.require("ptxas", "nvdisasm")
    compile_all(tmp_path, sm, "3", {"setp"})
    report = check(distinct_words([tmp_path]), sm)
    assert report.words > 300
    assert report.wrong == 0, dict(report.examples)
    assert report.refused == report.undefined, dict(report.examples)


@pytest.mark.parametrize("sm", [90])
def test_generated(sm: int) -> None:
    """Random instructions of the arithmetic rows print as nvdisasm prints them."""
    oracle.require("nvdisasm")
    target = isa.target(sm)
    ops = set("IADD3 IMAD ISETP LOP3 SHF PRMT FADD FMUL FFMA FSETP DADD DFMA HADD2 MOV SEL LDS STS LDL STL S2R".split())  # noqa: SIM905
    words = [w for _, w in random_words(target, 4, 7, ops) if target.decode_plan(w)]
    for k, (word, text) in enumerate(zip(words, texts(words, sm, 4096))):
        found = target.decode_plan(word, 16 * k)
        assert found
        assert spaces(target.format(found[0], 16 * k, found[1])).rstrip() == spaces(text), hex(word)


@pytest.mark.parametrize("sm", [75, 80, 90, 100, 120])
def test_disasm_round_trip(sm: int) -> None:
    """A cubin's listing and its lifted form both give its bytes back."""
    oracle.require("ptxas")
    path = oracle.run_ptxas(KERNELS / f"sm_{sm}" / "scan.ptx", sm)
    assert isinstance(path, Path)
    cubin = read_cubin(path.read_bytes())
    assert cubin.sm == sm
    assert patch_cubin(cubin, assemble("".join(print_cubin(cubin, True)), cubin)) == cubin.data
    header, _, units = lift(cubin)
    assert patch_cubin(cubin, relowered(units, header)) == cubin.data


def test_damaged_cubins() -> None:
    """Cut and changed files give a diagnostic."""
    oracle.require("ptxas")
    path = oracle.run_ptxas(KERNELS / "sm_90" / "vadd.ptx", 90)
    assert isinstance(path, Path)
    data = path.read_bytes()
    for size in (0, 3, 16, 64, 200, len(data) // 2, len(data) - 1):
        try:
            read_cubin(data[:size])
        except CubinError:
            continue
    for at in range(0, 64):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        try:
            read_cubin(bytes(broken))
        except CubinError:
            continue
