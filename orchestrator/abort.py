"""How a compile is aborted."""

from __future__ import annotations


class Abort(Exception):
    """Stop with exit code 255; the diagnostics are printed already, or are the message."""
