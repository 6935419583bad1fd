"""Passes that think of registers and latencies; they come last."""
