"""The parse stage: PTX text to the `ptx` level of the IR."""

from __future__ import annotations

from stages.parse.sources import ParseResult, parse_sources, parse_text

__all__ = ["ParseResult", "parse_sources", "parse_text"]
