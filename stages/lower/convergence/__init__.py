"""Convergence barriers: where threads of a warp diverge and where they reconverge."""
