"""Passes over memory accesses."""
