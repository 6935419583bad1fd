"""The numbers of mbarrier operations in `.nv.info`, for debuggers (measured: each PTX operation on sm_80, sm_90 and
sm_100)."""

from __future__ import annotations

from ir_format.model import AttrValue
from ir_format.typed import Final

#: The operations in the order of the numbers that the record gives them.
_OPERATIONS: Final = (
    "init arrive arrive.noComplete arrive_drop arrive_drop.noComplete test_wait test_wait.parity cp.async inval "
    "try_wait try_wait.parity expect_tx complete_tx"
)
_NUMBER: Final = {name: i for i, name in enumerate(_OPERATIONS.split())}


def listed(operation: str) -> dict[str, AttrValue]:
    """The attribute for the instruction of an mbarrier operation: `encode` marks its place (docs/stream.md,
    ``mbarrier``)."""
    return {"mbarrier": _NUMBER[operation]}
