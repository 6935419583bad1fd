"""Passes that consider registers and latencies; they come last."""
