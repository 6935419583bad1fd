"""How many blocks of a kernel one SM holds.

Registers are given out to a warp in units of 256 and lie in four parts of an SM; shared memory is given out to a block
in units, and the driver takes some of each block for itself (:class:`ir_format.target.Target`). These are the rules of
the occupancy calculator of the CUDA toolkit, with which a test compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from ir_format.target import Target
from ir_format.typed import Final
from stages.analysis.register_limits import REGISTERS_PER_SM

_PARTS: Final = 4
_REGISTER_UNIT: Final = 256


@dataclass(frozen=True)
class Occupancy:
    """``blocks`` and ``warps`` on one SM at once; ``fraction`` of the warps that it can hold; ``limits``: what keeps
    it from holding one block more (registers, shared memory, warps, blocks)."""

    threads: int
    blocks: int
    warps: int
    fraction: float
    limits: tuple[str, ...]


def occupancy(t: Target, registers: int, shared: int, threads: int) -> Occupancy:
    """The occupancy of a kernel in blocks of ``threads`` threads with ``shared`` bytes of shared memory, static and
    dynamic. Raises ValueError for a block that there can't be."""
    if not 0 < threads <= 1024:
        raise ValueError(f"a block has 1 to 1024 threads and no negative amount of shared memory, not {threads}")
    warps = -(-threads // 32)
    of_warp = -(-registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    room = REGISTERS_PER_SM // _PARTS // of_warp * _PARTS if of_warp else t.max_warps
    most = {"warps": t.max_warps // warps, "blocks": t.max_ctas, "registers": room // warps}
    shared = -(-(shared + t.shared_taken) // t.shared_unit) * t.shared_unit
    if shared and t.shared_kib:
        most["shared memory"] = (t.shared_kib << 10) // shared
    blocks = min(most.values())
    limits = tuple([name for name, n in most.items() if n == blocks])
    return Occupancy(threads, blocks, blocks * warps, blocks * warps / t.max_warps, limits)
