"""The mnemonic of a PTX descriptor row is the name of its rules: `lower` and the interpreter both have one under that
name, so nothing else ties the three together."""

from __future__ import annotations

from stages.interpret import actions, control, matrix, tiles, wmma
from stages.interpret.rows import PURE
from stages.lower.rules.table import rules
from stages.parse.table import _LINES, _family_names

#: Mnemonics that the interpreter does not evaluate, by the reason that docs/judges.md gives.
NOT_INTERPRETED = {
    "textures and surfaces": "istypep suld suq sured sust tex tld4 txq",
    "warpgroup products": "wgmma",
    "memory of several devices, work stealing": "clusterlaunchcontrol multimem",
    "ends the program": "brkpt",
}


def mnemonics() -> set[str]:
    """The mnemonics of all descriptor rows."""
    return {name.partition(".")[0] for name in (*_LINES, *_family_names())}


def test_every_row_has_a_lowering_rule_of_its_name() -> None:
    assert {key.partition(".")[0] for key in rules()} == mnemonics()


def test_every_row_has_an_interpreter_rule_of_its_name() -> None:
    known = {*PURE, *actions._ALL, *control.ACTIONS, *tiles.ACTIONS, *matrix.ACTIONS, *wmma.ACTIONS}
    missing = {name for names in NOT_INTERPRETED.values() for name in names.split()}
    assert mnemonics() - known == missing
    assert known <= mnemonics()
