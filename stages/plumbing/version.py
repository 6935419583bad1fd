"""The version of orias, as streams, messages and the cache tell it."""

from __future__ import annotations

VERSION = "0.1.0"
