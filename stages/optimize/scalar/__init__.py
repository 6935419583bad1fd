"""Passes over values: combining, value numbering, dead code."""
