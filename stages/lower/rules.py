"""The rule table: every rule module's ``RULES`` merged, and the lookup of the rule for a PTX instruction."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module

from ir_format.ptx import PtxInst

from .builder import Rule


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """All rules by key; raises RuntimeError if two modules claim one key (a fault of ours)."""
    package = __name__.rpartition(".")[0]
    here = os.path.dirname(__file__)  # pkgutil's walk would import inspect
    table: dict[str, Rule] = {}
    owner: dict[str, str] = {}
    for name in sorted({f.partition(".")[0] for f in os.listdir(here) if f.startswith(("rules_", "math"))}):
        module = import_module(f"{package}.{name}")
        for key, rule in getattr(module, "RULES", {}).items():
            if key in table:
                raise RuntimeError(f"lowering rule '{key}' is in both {owner[key]} and {name}")
            table[key] = rule
            owner[key] = name
    return table


def find_rule(inst: PtxInst) -> Rule | None:
    """The most specific rule for an instruction, or None."""
    table = rules()
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
