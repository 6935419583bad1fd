"""Analyses that several stages use: dependences, divergence, register limits, calling convention. No stage is imported
here."""
