"""Operations on mbarriers, as `.nv.info` numbers them for debuggers (measured: each operation of PTX on sm_80, sm_90
and sm_100)."""

from __future__ import annotations

from typing import Final

from ir_format.model import AttrValue

#: The operations in the order of the numbers that the record gives them.
_OPERATIONS: Final = (
    "init arrive arrive.noComplete arrive_drop arrive_drop.noComplete test_wait test_wait.parity cp.async inval "
    "try_wait try_wait.parity expect_tx complete_tx"
)
_NUMBER: Final = {name: i for i, name in enumerate(_OPERATIONS.split())}


def listed(operation: str) -> dict[str, AttrValue]:
    """The attribute of the instruction that does it: `encode` marks the place (docs/stream.md, ``mbarrier``)."""
    return {"mbarrier": _NUMBER[operation]}
