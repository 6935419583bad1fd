"""nvdisasm accepts every word that the decoder accepts, with the same text: samples of `tests.isa.randomwords` and of
the matrix products that ptxas writes."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest

from ir_format import isa
from tests import oracle
from tests.isa.corpus import compile_all
from tests.isa.coverage import check, distinct_words
from tests.isa.randomwords import body_words, compare, flipped_words, mnemonics_of

pytestmark = pytest.mark.oracle
ROWS = "convert,floating,half,integer,tensor"


@pytest.mark.parametrize("sm", [75, 80, 89, 90, 100, 103, 110, 120])
def test_damaged_words(sm: int) -> None:
    """Arithmetic and matrix words with flipped bits, and random bits with their opcodes."""
    oracle.require("nvdisasm")
    target = isa.target(sm)
    ops = mnemonics_of(ROWS)
    words = [*flipped_words(target, 8, sm, ops), *body_words(target, 15, sm, ops)]
    wrong: dict[str, list[str]] = defaultdict(list)
    assert compare(target, words, wrong) > 300
    assert not wrong, {name: items[0] for name, items in wrong.items()}


def test_missed_words_are_found() -> None:
    """The comparison can fail: a form without a row (FMNMX.IS_A) is missed; a dead bit, which nvdisasm ignores, only
    makes another spelling."""
    oracle.require("nvdisasm")
    target = isa.target(90)
    missed: dict[str, list[str]] = defaultdict(list)
    rng = random.Random(1)
    words = [w | 1 << 100 for w in flipped_words(target, 3, rng.getrandbits(8), {"FADD"})]
    assert compare(target, [*words, 0x040FE20005030102800000CE1E5D7209], defaultdict(list), missed) == 0
    assert set(missed) == {"FMNMX"}


@pytest.mark.parametrize("sm", ["75", "80", "90a", "120a"])
def test_matrix_products(sm: str, tmp_path: Path) -> None:
    """Sparse, scaled and plain products of ptxas: text and bits of every word, none refused."""
    oracle.require("ptxas", "nvdisasm")
    good, _ = compile_all(
        tmp_path, sm, "3", {"mma" if sm in ("75", "80") else "mmascale" if sm == "120a" else "mmasparse"}
    )
    assert good > 20
    report = check(distinct_words([tmp_path]), sm)
    assert report.words > 60
    assert report.wrong == 0, dict(report.examples)
    assert report.refused == report.undefined, dict(report.examples)
