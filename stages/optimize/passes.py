"""The passes of the optimize stage, in order."""

from __future__ import annotations

from stages.optimize.atomics import gather_atomics
from stages.optimize.branches import drop_warpsync, tidy_branches
from stages.optimize.convention import lower_return_register
from stages.optimize.dce import remove_dead_code
from stages.optimize.guarded import unguard_copies
from stages.optimize.licm import hoist_invariants
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
from stages.optimize.webs import split_webs
from stages.plumbing.runner import Pass

PASSES: tuple[Pass, ...] = (
    Pass("guarded", unguard_copies, min_opt=1),
    Pass("webs", split_webs, min_opt=1),
    Pass("dce-first", remove_dead_code, min_opt=1),  # upper words of sums that are addresses of 32 bits
    Pass("simplify", simplify, min_opt=1),
    Pass("dce", remove_dead_code, min_opt=1),
    Pass("branches", tidy_branches, min_opt=1),
    Pass("predicate", predicate_arms, min_opt=1),
    Pass("warpsync", drop_warpsync, min_opt=1),
    Pass("atomics", gather_atomics, min_opt=1),
    Pass("rotate", rotate_loops, min_opt=2),
    Pass("simplify-again", simplify, min_opt=2),  # sees use counts without the dead readers, and longer blocks
    Pass("pool", pool_doubles, min_opt=1),
    Pass("dce-again", remove_dead_code, min_opt=1),
    Pass("licm", hoist_invariants, min_opt=2),
    Pass("unroll", unroll_loops, min_opt=2),
    Pass("vectors", join_loads, min_opt=1),
    Pass("pointers", share_pointers, min_opt=2),
    Pass("uniform", share_words, min_opt=1),
    Pass("sink", sink_values, min_opt=1),
    Pass("remat", make_again, min_opt=1),
    Pass("convention", lower_return_register, min_opt=1),
    Pass("order", order_blocks, min_opt=1),
)
