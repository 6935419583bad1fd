"""Lowering rules of floating-point arithmetic, conversions and division, and the library functions that they call."""
