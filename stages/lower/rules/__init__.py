"""Lowering rules, a file for each family of PTX instructions; :mod:`stages.lower.rules.table` merges them."""
