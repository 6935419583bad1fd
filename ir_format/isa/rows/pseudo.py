"""Instructions that exist before encoding only (:data:`ir_format.model.PSEUDO`): facts, no rows."""

from __future__ import annotations

TEXT = r"""
op COPY       pure constant remat=1
op PCOPY      effect=copy
op PHI        effect=copy
op UNDEF      pure
op FENTRY     effect=state varies noduplicate
"""
