"""Convergence barriers: where threads of a warp part and where they meet again."""
