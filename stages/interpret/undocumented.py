"""Forms that ptxas accepts but the PTX manual does not have. Their meaning is documented nowhere, so the interpreter
refuses them.

Taken from the syntax and the target notes of the manual (PTX ISA 9.0).
"""

from __future__ import annotations

import re
from typing import Final

from stages.interpret.rows import Unsupported


class Outside(Unsupported):
    """A form that the manual does not have."""


#: (pattern of the opcode, first target that has it or 0 for none, what the manual says).
_FORMS: Final = [
    (re.compile(pattern), first, why)
    for pattern, first, why in (
        (r"(?:ld|ldu|st)\b.*\.v8\.[bus](?:8|16)$", 0, "vectors of eight are of 32-bit types"),
        (r"fma\.r[zmp]\b(?!.*\.f32).*\.b?f16(?:x2)?$", 0, "fma of half numbers rounds to nearest"),
        (
            r"st\.async\b(?!.*\.mbarrier::complete_tx::bytes\b)(?!.*\.release\.(?:gpu|sys)\b)",
            0,
            "st.async without a barrier object is .release with a scope",
        ),
        (r"(?:st|red)\.async\.mmio\b(?!.*\.sys\b)", 0, ".mmio is of scope .sys"),
        (
            r"red\.async\b(?!\.relaxed\.cluster\b)(?!.*\.release\..*add\.[us](?:32|64)$)",
            0,
            "red.async without a barrier object is .release and .add of integers",
        ),
        (r"testp\.f(?:32|64)$", 0, "testp names a property"),
        (r"fence\.(?:acquire|release)\b", 90, ".acquire and .release of fence need sm_90"),
    )
]


def refuse_outside(opcode: str, target: str) -> None:
    """Raises Outside for an opcode that the manual does not have for a target."""
    number = int("".join([c for c in target if c.isdigit()]) or 0)
    for pattern, first, why in _FORMS:
        if (not first or number < first) and pattern.match(opcode):
            raise Outside(f"{opcode} is not in the PTX manual: {why}")
