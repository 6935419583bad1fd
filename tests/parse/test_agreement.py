"""Agreement with ptxas on a small sample; `python -m tests.parse.agreement` measures it in full."""

from __future__ import annotations

import random

import pytest

from stages.parse import table
from tests import oracle
from tests.parse import agreement, gates, tokens
from tests.parse.agreement import compare, compare_modules
from tests.parse.generate import accepted, mutated
from tests.parse.helpers import corpus


def test_every_row_can_be_read() -> None:
    names = table.names()
    rows = [row for name in names for row in table.rows(name)]
    assert len(names) > 220
    assert len({row.key for row in rows}) == len(rows)
    assert all(row.name == name for name in names for row in table.rows(name))


def test_every_row_makes_a_case() -> None:
    made = {case.row for case in accepted("sm_100a", 1)}
    skipped = ("call", "brx.idx", "ret", "exit")
    rows = [row for name in table.names() if name not in skipped for row in table.rows(name)]
    assert {row.key for row in rows if not row.gate.version_below and not row.gate.target_below} <= made


@pytest.mark.oracle
@pytest.mark.parametrize(("target", "release"), [("sm_80", "13.0"), ("sm_100a", "13.5")])
def test_instructions(target: str, release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle.require("ptxas" if release == "13.0" else oracle.NEWER)
    monkeypatch.setattr(agreement, "RELEASE", release)
    cases = list(accepted(target, 2))[::4] + list(mutated(target, 11, 1500))
    counts = compare(cases)
    n = counts["cases"] - counts["oracle crashed"]
    assert counts["verdict equal"] >= 0.995 * n
    assert counts["first class equal"] >= 0.93 * counts["refused by both"]


@pytest.mark.oracle
def test_gates() -> None:
    oracle.require("ptxas")
    found = dict(list(gates.forms(2).items())[::120])
    versions = ["1.4", "2.0", "3.1", "5.1", "6.3", "7.0", "7.8", "8.1", "8.6"]
    result = gates.compare(
        found,
        versions,
        ["sm_13", "sm_30", "sm_60", "sm_75", "sm_89", "sm_100f", "sm_110a", "sm_121"],
        (("8.0", "sm_89"),),
    )
    assert result.counts["cases"] > 500
    assert not result.counts["verdict differs"], result.wrong
    assert result.counts["first class equal"] >= 0.98 * result.counts["refused by both"]


@pytest.mark.oracle
def test_modules() -> None:
    oracle.require("ptxas")
    cases, equal, same = compare_modules(False)
    assert equal >= 0.995 * cases
    assert same >= 0.98 * cases


@pytest.mark.oracle
def test_one_token_faults() -> None:
    oracle.require("ptxas")
    rng = random.Random(21)
    files = [p.read_text() for p in corpus() if p.stat().st_size < 6000 and p.parent.name in ("sm_90", "hand")]
    counts, _ = tokens.compare([tokens.mutate(rng, rng.choice(files)) for _ in range(150)])
    assert counts["verdict equal"] >= 0.98 * counts["cases"]
    assert counts["line equal"] >= 0.97 * counts["refused by both"]
    assert counts["class equal"] >= 0.93 * counts["refused by both"]
