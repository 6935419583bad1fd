"""The passes of the optimize stage, in order."""

from __future__ import annotations

from stages.optimize.analyses import FLOW
from stages.optimize.atomics import gather_atomics
from stages.optimize.branches import drop_warpsync, tidy_branches
from stages.optimize.contraction import contract
from stages.optimize.convention import lower_return_register
from stages.optimize.dce import remove_dead_code
from stages.optimize.guarded import unguard_copies
from stages.optimize.licm import hoist_invariants
from stages.optimize.manager import FunctionPass, UnitPass
from stages.optimize.order import order_blocks
from stages.optimize.pointers import share_pointers
from stages.optimize.pool import pool_doubles
from stages.optimize.predicate import predicate_arms
from stages.optimize.remat import make_again
from stages.optimize.rotate import rotate_loops
from stages.optimize.simplify import simplify
from stages.optimize.sink import sink_values
from stages.optimize.uniform import share_words
from stages.optimize.unroll import unroll_loops
from stages.optimize.vectors import join_loads
from stages.plumbing.runner import Pass

_TABLE: tuple[FunctionPass | UnitPass, ...] = (
    UnitPass("guarded", unguard_copies),
    FunctionPass(
        "dce-first", remove_dead_code, ssa=True, keeps=FLOW
    ),  # upper words of sums that are addresses of 32 bits
    # before equal products, marked and not, become one
    FunctionPass("contraction", contract, ssa=True, keeps=FLOW),
    FunctionPass("simplify", simplify, ssa=True, keeps=FLOW),
    FunctionPass("dce", remove_dead_code, ssa=True, keeps=FLOW),
    UnitPass("branches", tidy_branches),
    UnitPass("predicate", predicate_arms),
    UnitPass("warpsync", drop_warpsync),
    UnitPass("atomics", gather_atomics),
    UnitPass("rotate", rotate_loops, min_opt=2),
    # sees use counts without the dead readers, and longer blocks
    FunctionPass("simplify-again", simplify, ssa=True, keeps=FLOW, min_opt=2),
    UnitPass("pool", pool_doubles, ssa=True, keeps=FLOW),
    FunctionPass("dce-again", remove_dead_code, ssa=True, keeps=FLOW),
    FunctionPass("licm", hoist_invariants, min_opt=2),
    FunctionPass("unroll", unroll_loops, min_opt=2),
    FunctionPass("vectors", join_loads),
    UnitPass("pointers", share_pointers, min_opt=2),
    UnitPass("uniform", share_words),
    UnitPass("sink", sink_values),
    UnitPass("remat", make_again),
    UnitPass("convention", lower_return_register),
    UnitPass("order", order_blocks),
)

PASSES: tuple[Pass, ...] = tuple(p.row() for p in _TABLE)
