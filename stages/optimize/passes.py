"""The passes of the optimize stage, in order, with the reasons for the order, which is checked at load. A pass that
has nothing to do in most small kernels has a condition for that, and is imported where it holds."""

from __future__ import annotations

from ir_format.isa import facts
from ir_format.model import Function, Unit
from stages.optimize.analyses import FLOW, Analyses
from stages.optimize.control.if_conversion import convert_ifs
from stages.optimize.control.simplify_cfg import drop_warpsync, merge_blocks, simplify_cfg
from stages.optimize.late.list_schedule import schedule_blocks
from stages.optimize.late.sink import sink_values
from stages.optimize.late.uniform_promotion import promote_to_uniform
from stages.optimize.late.used_bytes import mark_used_bytes
from stages.optimize.loops.natural import has_loops
from stages.optimize.manager import FunctionPass, Order, UnitPass, check_order, late, row, with_attribute, with_op
from stages.optimize.memory.redundancy import remove_dead_stores, remove_redundant_loads
from stages.optimize.scalar.copy_propagation import propagate_copies
from stages.optimize.scalar.dce import sweep
from stages.optimize.scalar.rules import combine
from stages.optimize.scalar.sccp import propagate_constants
from stages.plumbing.runner import Pass

_VALUES = FLOW | {"values"}
_DOUBLE = facts.of_class("fp64")


def _has_frame(f: Function, a: Analyses) -> bool:
    return f.frame > 0


def _has_loops(f: Function, a: Analyses) -> bool:
    return has_loops(f)


def _unit_has_loops(unit: Unit) -> bool:
    return any(map(has_loops, unit.functions))


def _is_tight(f: Function, a: Analyses) -> bool:
    return sum(v.width for v in f.vregs if v.file == "R") > a.room


def _has_doubles(unit: Unit) -> bool:
    return any(i.op in _DOUBLE for f in unit.functions for b in f.blocks for i in b.insts)


def _has_callees(unit: Unit) -> bool:
    return len(unit.functions) > 1


_TABLE: tuple[FunctionPass | UnitPass, ...] = (
    FunctionPass("merge-blocks", merge_blocks),
    FunctionPass(
        "guarded-vectors", late("memory.guarded_vectors", "place_guarded_vectors"), keeps=FLOW, where=with_op("UNDEF")
    ),
    FunctionPass("copy-propagation", propagate_copies, keeps=FLOW | {"writes"}),
    FunctionPass("dce-first", sweep, keeps=FLOW | {"writes", "swept"}),
    FunctionPass(
        "contraction", late("scalar.contraction", "contract"), ssa=True, keeps=_VALUES, where=with_attribute("contract")
    ),
    FunctionPass("combine", combine, ssa=True, keeps=_VALUES),
    FunctionPass("load-elimination", remove_redundant_loads, ssa=True, keeps=_VALUES),
    FunctionPass("dead-stores", remove_dead_stores, ssa=True, keeps=_VALUES),
    FunctionPass("dce", sweep, ssa=True, keeps=_VALUES | {"swept"}),
    FunctionPass(
        "local-arrays", late("memory.local_arrays", "promote_local_arrays"), ssa=True, keeps=FLOW, where=_has_frame
    ),
    FunctionPass("sccp", propagate_constants, ssa=True, keeps=_VALUES),
    FunctionPass("simplify-cfg", simplify_cfg, ssa=None),
    FunctionPass("if-conversion", convert_ifs, ssa=None),
    FunctionPass("warpsync", drop_warpsync, ssa=None, keeps=FLOW),
    FunctionPass(
        "atomics", late("memory.atomics", "gather_atomics"), ssa=None, keeps=FLOW, where=with_attribute("relaxed")
    ),
    FunctionPass("rotate", late("loops.rotate", "rotate_loops"), ssa=None, min_opt=2, where=_has_loops),
    FunctionPass("combine-again", combine, ssa=True, keeps=FLOW, min_opt=2),
    UnitPass("constant-pool", late("scalar.constant_pool", "pool_doubles"), ssa=True, keeps=FLOW, where=_has_doubles),
    FunctionPass("dce-again", sweep, ssa=True, keeps=_VALUES | {"swept"}),
    FunctionPass("licm", late("loops.licm", "hoist_invariants"), min_opt=2, where=_has_loops),
    FunctionPass("unroll", late("loops.unroll", "unroll_loops"), min_opt=2, where=_has_loops),
    FunctionPass("load-vectorize", late("memory.vectorize_loads", "vectorize_loads"), keeps=FLOW, where=with_op("LDS")),
    FunctionPass(
        "uniform-datapath", late("late.uniform_datapath", "use_uniform_datapath"), keeps=FLOW, where=with_op("R2UR")
    ),
    UnitPass("uniform-promotion", promote_to_uniform, keeps=FLOW),
    UnitPass("uniform-webs", late("late.uniform_webs", "move_uniform_webs"), keeps=FLOW, where=_unit_has_loops),
    FunctionPass(
        "pointer-sharing", late("loops.share_pointers", "share_pointers"), keeps=FLOW, min_opt=2, where=_has_loops
    ),
    FunctionPass("sink", sink_values, keeps=FLOW),
    FunctionPass("rematerialize", late("late.rematerialize", "rematerialize"), keeps=FLOW, where=_is_tight),
    UnitPass("return-register", late("late.return_register", "lower_return_register"), keeps=FLOW, where=_has_callees),
    FunctionPass("list-schedule", schedule_blocks, keeps=FLOW),
    FunctionPass("used-bytes", mark_used_bytes, keeps=FLOW),
)

#: Ordering constraints and their reasons.
_ORDER: tuple[Order, ...] = (
    Order("guarded-vectors", "combine", "its copies are looked through there"),
    Order("guarded-vectors", "copy-propagation", "it looks for the copies as lowering made them"),
    Order("copy-propagation", "dce-first", "copies are dead then"),
    Order("dce-first", "combine", "upper words of sums that are addresses of 32 bits would keep both halves together"),
    Order("contraction", "combine", "equal products, marked and not, become one there"),
    Order("combine", "if-conversion", "the length of an arm is counted in instructions that will be left"),
    Order("combine", "load-elimination", "addresses are one value and an offset then"),
    Order("load-elimination", "dead-stores", "a load that is gone keeps no store"),
    Order("dead-stores", "dce", "what was stored is dead then"),
    Order("load-elimination", "combine-again", "the copies that replace loads are looked through there"),
    Order("load-elimination", "local-arrays", "what is loaded where it is known needs no choice"),
    Order("dce", "local-arrays", "halves of addresses that nobody reads would be other uses of them"),
    Order("local-arrays", "combine-again", "copies of words are looked through there"),
    Order("local-arrays", "sccp", "words of local memory are values then"),
    Order("sccp", "simplify-cfg", "a branch that always goes to one block is removed there"),
    Order("sccp", "combine-again", "instructions take the constants as operands there"),
    Order("simplify-cfg", "if-conversion", "jumps to jumps hide triangles and diamonds"),
    Order("if-conversion", "rotate", "a loop of one block is rotated and unrolled, one with arms is not"),
    Order("if-conversion", "combine-again", "longer blocks; readers that died are counted no more"),
    Order("warpsync", "atomics", "a vote of the warp ends at a WARPSYNC that is needless"),
    Order("rotate", "licm", "loads leave a loop only if every path through it executes them"),
    Order("rotate", "unroll", "a loop of one block tests at its end"),
    Order("constant-pool", "dce-again", "the moves that made the constants are dead then"),
    Order("licm", "unroll", "what is invariant is copied once, and counts for the size of the body no more"),
    Order("unroll", "load-vectorize", "neighbouring words are loaded in different iterations"),
    Order("unroll", "pointer-sharing", "register pressure grows with unrolled iterations"),
    Order("pointer-sharing", "rematerialize", "shared pointers are made again from words that it leaves"),
    Order("uniform-datapath", "uniform-promotion", "words of constants that R2UR alone reads are left then"),
    Order(
        "uniform-promotion",
        "uniform-webs",
        "an instruction takes one uniform operand; words of the constant bank come first",
    ),
    Order("uniform-webs", "pointer-sharing", "live values are counted without uniform registers"),
    Order("uniform-promotion", "pointer-sharing", "live values are counted without words in uniform registers"),
    Order("uniform-promotion", "sink", "words in uniform registers need no place near their readers"),
    Order("sink", "rematerialize", "what moves costs nothing, what is made again costs instructions"),
    Order("rematerialize", "list-schedule", "the schedule is made for the final live values"),
    Order("rematerialize", "used-bytes", "readers that are made again elsewhere read a word no more"),
    Order("return-register", "list-schedule", "fixed registers hold instructions in place"),
)

check_order([p.name for p in _TABLE], _ORDER)
PASSES: tuple[Pass, ...] = tuple(map(row, _TABLE))
