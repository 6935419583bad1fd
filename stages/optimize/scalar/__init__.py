"""Scalar passes: global value numbering, instruction combining, copy propagation, dead code."""
