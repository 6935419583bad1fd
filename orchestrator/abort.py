"""How a compile is given up."""

from __future__ import annotations


class Abort(Exception):
    """Stop with exit code 255; what is to be said has been said or is the message."""
