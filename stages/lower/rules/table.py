"""The rule table: the merged ``RULES`` of all rule modules, and the lookup of the rule for a PTX instruction. Modules
for families that few kernels use are imported on demand, so that a small kernel compiles faster."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import Final

from ir_format.ptx import PtxInst
from stages.lower.builder import Rule

#: Modules that are imported on demand, and their mnemonics. All others are always imported.
SELDOM: Final = {
    "math.convert": "cvt",
    "rules.async_copy": "createpolicy getctarank mapa mbarrier",
    "rules.atomic": "atom red",
    "rules.bulk": "setmaxnreg",
    "rules.cluster": "clusterlaunchcontrol",
    "rules.matrix": "ldmatrix movmatrix stmatrix",
    "rules.mma": "mma",
    "rules.multimem": "multimem",
    "rules.stack": "alloca stackrestore stacksave",
    "rules.surface": "suld sured sust",
    "rules.tcgen05": "tcgen05",
    "rules.tensormap": "tensormap",
    "rules.texture": "suq tex tld4 txq",
    "rules.video": "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 "
    "vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4",
    "rules.wmma": "wmma",
}
_LOWER = __name__.removesuffix(".rules.table")
_table: dict[str, Rule] = {}
_owner: dict[str, str] = {}
_left = {
    word: name for name, words in SELDOM.items() for word in words.split()
}  # mnemonic -> its module, until that is imported


def _take(name: str) -> None:
    """Add the rules of a module to the table. Raises RuntimeError if two modules have the same key."""
    module = import_module(f"{_LOWER}.{name}")
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


def modules() -> list[str]:
    """The rule modules, relative to `stages.lower`. The folders are listed here, because pkgutil would import
    inspect."""
    lower = os.path.dirname(os.path.dirname(__file__))
    found = {
        f"{folder}.{file.partition('.')[0]}"
        for folder in ("math", "rules")
        for file in os.listdir(os.path.join(lower, folder))
        if not file.startswith("__") and file.endswith((".py", ".so"))
    }
    return sorted(found - {"rules.table"})


@lru_cache(maxsize=1)
def usual() -> dict[str, Rule]:
    """The table with the rules of all modules but the :data:`SELDOM` ones."""
    for name in modules():
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
    """Whether the rule belongs to a math module: these check modifiers themselves."""
    return ".lower.math." in getattr(rule, "__module__", "")
