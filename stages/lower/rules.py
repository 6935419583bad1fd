"""The rule table: every rule module's ``RULES`` merged, and the lookup of the rule for a PTX instruction. Modules for families that few kernels use are
imported when they are met, so that a small kernel compiles sooner."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import Final

from ir_format.ptx import PtxInst

from .builder import Rule

#: Modules that are imported when an instruction of theirs is met, by mnemonic; the others are always needed.
SELDOM: Final = {
    "math_convert": "cvt",
    "rules_async": "createpolicy getctarank mapa mbarrier",
    "rules_atomic": "atom red",
    "rules_bulk": "setmaxnreg",
    "rules_cluster": "clusterlaunchcontrol",
    "rules_matrix": "ldmatrix movmatrix stmatrix",
    "rules_mma": "mma",
    "rules_multimem": "multimem",
    "rules_stack": "alloca stackrestore stacksave",
    "rules_surface": "suld sured sust",
    "rules_tcgen05": "tcgen05",
    "rules_tensormap": "tensormap",
    "rules_texture": "suq tex tld4 txq",
    "rules_video": "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4",
    "rules_wmma": "wmma",
}
_table: dict[str, Rule] = {}
_owner: dict[str, str] = {}
_left = {
    word: name for name, words in SELDOM.items() for word in words.split()
}  # mnemonic -> its module, until that is imported


def _take(name: str) -> None:
    """Put the rules of a module into the table; raises RuntimeError if two modules claim one key (a fault of ours)."""
    module = import_module(f"{__name__.rpartition('.')[0]}.{name}")
    for key, rule in getattr(module, "RULES", {}).items():
        if key in _table:
            raise RuntimeError(f"lowering rule '{key}' is in both {_owner[key]} and {name}")
        _table[key] = rule
        _owner[key] = name


def _take_seldom(op: str) -> None:
    """Import the module of a mnemonic."""
    name = _left[op]
    for other in SELDOM[name].split():
        del _left[other]
    _take(name)


@lru_cache(maxsize=1)
def usual() -> dict[str, Rule]:
    """The table with the rules of all modules but the :data:`SELDOM` ones."""
    here = os.path.dirname(__file__)  # pkgutil's walk would import inspect
    for name in sorted({f.partition(".")[0] for f in os.listdir(here) if f.startswith(("rules_", "math"))}):
        if name not in SELDOM:
            _take(name)
    return _table


def rules() -> dict[str, Rule]:
    """All rules by key."""
    table = usual()
    while _left:
        _take_seldom(next(iter(_left)))
    return table


def find_rule(inst: PtxInst) -> Rule | None:
    """The most specific rule for an instruction, or None."""
    table = usual()
    if inst.op in _left:
        _take_seldom(inst.op)
    if inst.types:
        got = table.get(f"{inst.op}.{'.'.join(inst.types)}")
        if got is not None:
            return got
        got = table.get(f"{inst.op}.{inst.types[0]}")
        if got is not None:
            return got
    return table.get(inst.op)


def own_check(rule: Rule) -> bool:
    """True for the rules of the math modules, which look at modifiers themselves."""
    return ".math" in getattr(rule, "__module__", "")
