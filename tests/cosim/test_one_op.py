"""The sweep itself: what it draws and counts, its estimate for forms that it did not see, and its models of ptxas."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from stages.parse import table
from tests import oracle
from tests.cosim import one_op
from tests.cosim.forms import Corpus, make, screen
from tests.cosim.forms.base import Form, choices, modifiers, population, walk
from tests.cosim.tally import Tally, journal, lower_bound


def keys(row: table.Row, limit: int, seed: int = 0) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The forms drawn from a row."""
    return [(tuple(c.mods), c.types) for c in choices(row, limit, seed)]


def test_a_greater_limit_continues_a_smaller_one() -> None:
    row = table.rows("ld")[0]
    few, many = keys(row, 300), keys(row, 900)
    assert population(row) > 900
    assert many[:300] == few
    assert len(set(many)) == 900
    assert keys(row, 300, 1) != few


@pytest.mark.parametrize("name", ["ld", "red"])  # rows that are sampled, and rows that the greater limit covers
def test_skipping_leaves_out_exactly_what_the_smaller_limit_gives(name: str) -> None:
    def drawn(limit: int, skip: int) -> list[tuple[str, ...]]:
        return [(row.key, *c.mods, *c.types) for row, c in walk("sm_90", name, limit, 3, skip)]

    few, rest, many = drawn(50, 0), drawn(950, 50), drawn(950, 0)
    assert not set(few) & set(rest)
    assert sorted(few + rest) == sorted(many)


def test_forms_do_not_depend_on_what_else_is_drawn() -> None:
    alone = {f.opcode: f.body for f in Corpus("sm_90", "st", 60, 5).forms}
    together = {f.opcode: f.body for f in Corpus("sm_90", "ld|st|red", 80, 5).forms}
    assert len(alone) > 50
    assert all(together[opcode] == body for opcode, body in alone.items())


def filled() -> Tally:
    """A whole row of ten forms, nine equal; of a row of 1,000, 100 looked at: 20 by rule (all equal), 80 drawn, of
    which ptxas takes 40 and 30 are equal."""
    out = Tally()
    whole, drawn = out.row("a#0", 10), out.row("b#0", 1000)
    for k in range(10):
        whole.add("looked at", False)
        whole.add("ptxas equal" if k else "ptxas differs", False)
    for outcome, by_rule, by_chance in (
        ("looked at", 20, 80),
        ("ptxas takes", 20, 40),
        ("ptxas equal", 20, 30),
        ("ptxas as modelled", 0, 6),
        ("ptxas outside the manual", 0, 4),
    ):
        drawn.add(outcome, False, by_rule)
        drawn.add(outcome, True, by_chance)
    return out


def test_estimates_extend_the_sample_to_unseen_forms() -> None:
    e = filled().estimate("ptxas")
    unseen = 900 / 80  # forms for each drawn one
    assert e.rows == 1
    assert e.compared == pytest.approx(10 + 56 + 36 * unseen)
    assert e.equal == pytest.approx(9 + 50 + 30 * unseen)
    assert e.modelled == pytest.approx(6 + 6 * unseen)
    assert e.least == pytest.approx(9 + 50 + 36 * unseen * lower_bound(30, 36))


def test_bounds_grow_with_what_was_seen() -> None:
    assert lower_bound(0, 0) == 0
    assert 0.69 < lower_bound(10, 10) < lower_bound(100, 100) < lower_bound(10_000, 10_000) < 1
    assert lower_bound(90, 100) < 0.9


def test_tallies_add_up_and_come_back_from_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    entry = filled().as_json()
    path.write_text(
        "".join(
            [
                json.dumps({"run": run, "end": end, **entry}) + "\n"
                for run, end in (("sm_80 x", 60), ("sm_80 x", 120), ("sm_90 x", 60))
            ]
        )
    )
    found = journal([str(path)])
    assert {run: end for run, (end, _) in found.items()} == {"sm_80 x": 120, "sm_90 x": 60}
    twice = found["sm_80 x"][1]
    assert twice.rows["b#0"].population == 1000
    assert twice.rows["b#0"].drawn["ptxas equal"] == 60
    assert found["sm_90 x"][1].estimate("ptxas") == filled().estimate("ptxas")


def run(target: str, seed: int, only: str, opcodes: set[str]) -> one_op.Sweep:
    """Forms of a row on ptxas's cubins."""
    oracle.require("ptxas")
    sweep = one_op.Sweep(target, ("ptxas",), seed, None)
    sweep.chunk([f for f in Corpus(target, only, 3000, seed).forms if not opcodes or f.opcode in opcodes])
    return sweep


@pytest.mark.oracle
@pytest.mark.parametrize("seed", [7, 41])
def test_vmad_of_ptxas_is_as_modelled(seed: int) -> None:
    """Whole words are signed, no matter what their types say: these seeds draw forms without selectors."""
    sweep = run("sm_90", seed, "vmad", set())
    assert sweep.counts["ptxas differs"] == 0
    assert sweep.counts["ptxas as modelled"] >= 10
    assert sweep.counts["ptxas equal"] + sweep.counts["ptxas as modelled"] == sweep.counts["ptxas takes"] == 96


@pytest.mark.oracle
def test_wide_accesses_of_a_cluster_are_left_out_by_ptxas() -> None:
    """256 bits, scope .cluster: neither load nor store; other scopes have them. Ours has all of them."""
    oracle.require("ptxas")
    sweep = one_op.Sweep("sm_120a", ("ptxas", "ours"), 0, None)
    forms = []
    for name in ("ld", "st"):
        for row, choice in walk("sm_120a", name, 6000, 0):
            words = {*choice.mods, *choice.types}
            if (
                {"v4", "b64"} <= words
                and words & {"relaxed", "acquire", "release"}
                and words & {"cluster", "gpu"}
                and not words & {"shared", "shared::cta", "shared::cluster"}
            ):
                forms.append(make(row, choice.mods, choice.types, random.Random(0)))
    sweep.chunk([f for f in forms if f is not None])
    clusters = sweep.tally.known["ld, st of 256 bits of scope .cluster: no load, no store"]
    assert clusters >= 2
    assert sweep.counts["ptxas equal"] >= 2
    assert sweep.counts["ptxas equal"] + clusters == sweep.counts["ptxas takes"] == sweep.counts["ours equal"]


def great(target: str, key: str) -> screen.Heads:
    """The screen of one row."""

    def takes(forms: list[Form]) -> list[Form]:
        return [f for part, _ in one_op.ptxas_takes(forms, target) for f in part]

    return screen.screen(
        [row for row in screen.great_rows(target, one_op.GREAT) if row.key == key], make, takes, one_op.MOST
    )


@pytest.mark.oracle
@pytest.mark.parametrize(("target", "key"), [("sm_120a", "ld#4")])
def test_what_ptxas_takes_is_in_the_screen(target: str, key: str) -> None:
    """The plain draw does not know the screen: ptxas must accept nothing outside it, and most of what a screen
    leaves."""
    oracle.require("ptxas")
    heads = great(target, key)
    row = next(r for r in table.rows("ld") if r.key == key)
    plain = [(make(row, c.mods, c.types, random.Random(0)), c) for c in choices(row, 500, 1)]
    taken = {id(f) for part, _ in one_op.ptxas_takes([f for f, _ in plain if f is not None], target) for f in part}
    inside = [c for f, c in plain if id(f) in taken]
    assert len(inside) > 30
    assert all(screen.inside(heads, row, c.mods) for c in inside)
    drawn = Corpus(target, limit=200, heads=heads).forms
    assert sum([len(part) for part, _ in one_op.ptxas_takes(drawn, target)]) > 60


def test_a_screen_draws_each_form_once_and_none_of_the_plain_ones() -> None:
    row = table.rows("ld")[4]
    heads = {row.key: [m for m in modifiers(row) if not m[screen.vector_slot(row)]][:20]}
    drawn = list(screen.draw(heads, 10_000, 0, 0))
    assert {size for _, _, size in drawn} == {len(drawn)} == {20 * 4 * 15}
    places = {(tuple(c.mods), c.types) for _, c, _ in drawn}
    assert len(places) == len(drawn)
    gone = {(tuple(c.mods), c.types) for c in choices(row, 2400, 0)}
    rest = {(tuple(c.mods), c.types) for _, c, _ in screen.draw(heads, 10_000, 0, 2400)}
    assert rest == places - gone
    assert len(rest) < len(places)


def test_forms_outside_the_screen_are_counted_once() -> None:
    tally = filled()
    row = tally.row("b#0 screened", 50)
    for outcome, n in (("looked at", 10), ("ptxas takes", 8), ("ptxas equal", 8)):
        row.add(outcome, True, n)
    e = tally.estimate("ptxas")
    assert e.compared == pytest.approx(10 + 56 + 8 * 5)
    assert e.equal == pytest.approx(9 + 50 + 8 * 5)


@pytest.mark.oracle
def test_a_sweep_continues_from_its_journal(tmp_path: Path) -> None:
    oracle.require("ptxas")
    path = str(tmp_path / "journal")
    corpus = Corpus("sm_80", "min", 400, 0)
    first = one_op.sweep(corpus, ("ptxas",), keep=path)
    lines = Path(path).read_text().splitlines()
    again = one_op.sweep(corpus, ("ptxas",), keep=path)
    assert Path(path).read_text().splitlines() == lines
    assert again.counts == first.counts
    assert first.counts["ptxas equal"] > 5
