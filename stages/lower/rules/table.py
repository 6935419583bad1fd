"""The rule table: the merged ``RULES`` of all rule modules, and the lookup of the rule for a PTX instruction. A module
is imported with the first instruction that may need it, so that a small kernel compiles faster."""

from __future__ import annotations

from importlib import import_module

from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Rule

#: The rule modules, relative to `stages.lower`, and their mnemonics. A mnemonic that is missing here is found too,
#: after all modules are imported.
MODULES: Final = {
    "math.convert": "cvt",
    "math.f32": "abs add copysign cos div ex2 fma lg2 mad max min mul neg rcp rsqrt selp set setp sin sqrt sub tanh "
    "testp",
    "math.f64": "abs add copysign div fma mad max min mul neg rcp rsqrt set setp sqrt sub testp",
    "math.half": "abs add ex2 fma max min mul neg set setp sub tanh",
    "math.intdiv": "div rem",
    "rules.async_copy": "createpolicy getctarank mapa mbarrier",
    "rules.atomic": "atom red",
    "rules.bits": "and bfe bfi bfind bmsk brev clz cnot dp2a dp4a fns lop3 not or popc prmt selp set setp shf shl shr "
    "slct szext xor",
    "rules.bulk": "setmaxnreg",
    "rules.cluster": "clusterlaunchcontrol",
    "rules.control": "bra brkpt brx call exit ret trap",
    "rules.fabric": "fabric",
    "rules.integer": "abs add addc clmad mad mad24 madc max min mul mul24 neg sad sub subc",
    "rules.matrix": "ldmatrix movmatrix stmatrix",
    "rules.memory": "applypriority cvt cvta discard isspacep istypep ld ldu mov prefetch prefetchu st",
    "rules.mma": "mma",
    "rules.multimem": "multimem",
    "rules.stack": "alloca stackrestore stacksave",
    "rules.surface": "suld sured sust",
    "rules.sync": "activemask bar barrier cp elect fence griddepcontrol match membar nanosleep pmevent redux shfl vote",
    "rules.tcgen05": "tcgen05",
    "rules.tensormap": "tensormap",
    "rules.texture": "suq tex tld4 txq",
    "rules.video": "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 "
    "vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4",
    "rules.warpgroup": "wgmma",
    "rules.wmma": "wmma",
}
#: Modules whose rules all have one of some types.
TYPED: Final = {
    "math.f64": frozenset(("f64",)),
    "math.half": frozenset(("f16", "f16x2", "bf16", "bf16x2", "e4m3x4", "e5m2x4")),
}
_LOWER = __name__.removesuffix(".rules.table")
_table: dict[str, Rule] = {}
_owner: dict[str, str] = {}
_left: dict[str, list[str]] = {}  # mnemonic -> its modules that are not imported
for _name, _words in MODULES.items():
    for _word in _words.split():
        _left.setdefault(_word, []).append(_name)


def _take(name: str) -> None:
    """Import a module and add its rules to the table. Raises RuntimeError if two modules have the same key."""
    for word in MODULES[name].split():
        _left[word].remove(name)
    module = import_module(f"{_LOWER}.{name}")
    for key, rule in getattr(module, "RULES", {}).items():
        if key in _table:
            raise RuntimeError(f"lowering rule '{key}' is in both {_owner[key]} and {name}")
        _table[key] = rule
        _owner[key] = name


def rules() -> dict[str, Rule]:
    """All rules by key."""
    for name in MODULES:
        if name in _left[MODULES[name].partition(" ")[0]]:
            _take(name)
    return _table


def find_rule(inst: PtxInst) -> Rule | None:
    """The most specific rule for an instruction, or None."""
    if inst.op not in _left:  # a new one, which the list above doesn't have
        rules()
    for name in tuple(_left.get(inst.op, ())):
        if name not in TYPED or not TYPED[name].isdisjoint(inst.types):
            _take(name)
    if inst.types:
        got = _table.get(f"{inst.op}.{'.'.join(inst.types)}")
        if got is not None:
            return got
        got = _table.get(f"{inst.op}.{inst.types[0]}")
        if got is not None:
            return got
    return _table.get(inst.op)


def own_check(rule: Rule) -> bool:
    """Whether the rule belongs to a math module: these check modifiers themselves."""
    return ".lower.math." in getattr(rule, "__module__", "")
