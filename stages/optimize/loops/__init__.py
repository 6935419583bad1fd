"""Passes over loops."""
