"""Imports ahead of time, so that forks share them."""

from __future__ import annotations

from stages.plumbing.chain import MIDDLE


def import_stages(target: str) -> None:
    """Import what the chains need while parse runs, and read the tables of the target, so that forks share it."""
    from ir_format.hazards import hazards

    hazards(target)
    for s in MIDDLE:
        for f in (s.passes, s.begin, s.module):
            if f is not None:
                f()
