"""The passes of the optimize stage, in order."""

from __future__ import annotations

from stages.runner import Pass

PASSES: tuple[Pass, ...] = ()
