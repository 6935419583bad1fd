"""How many blocks of a kernel one SM holds.

Registers are given out to a warp in units of 256 and lie in four parts of an SM; shared memory is given out to a block
in units of 128 bytes (256 on sm_75), and from sm_80 on the driver takes 1,024 bytes of each block for itself. These are
the rules of the occupancy calculator of the CUDA toolkit, with which a test compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ir_format.target import target
from stages.analysis.register_limits import REGISTERS_PER_SM

if TYPE_CHECKING:
    from orias._results import Kernel

#: SM -> KiB of shared memory (CUDA's programming guide, compute capabilities). Where it is not known, shared memory
#: counts as no limit.
_SHARED_KIB: Final = {
    75: 64,
    80: 164,
    86: 100,
    87: 164,
    89: 100,
    90: 228,
    100: 228,
    103: 228,
    110: 228,
    120: 100,
    121: 100,
}
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


def occupancy(kernel: Kernel, threads: int, dynamic_shared: int) -> Occupancy:
    """The occupancy of a kernel in blocks of ``threads`` threads. Raises ValueError for a block that there can't be."""
    t = target(kernel.arch)
    if not 0 < threads <= 1024 or dynamic_shared < 0:
        raise ValueError(f"a block has 1 to 1024 threads and no negative amount of shared memory, not {threads}")
    warps = -(-threads // 32)
    of_warp = -(-kernel.registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    room = REGISTERS_PER_SM // _PARTS // of_warp * _PARTS if of_warp else t.max_warps
    most = {"warps": t.max_warps // warps, "blocks": t.max_ctas, "registers": room // warps}
    unit = 256 if t.sm < 80 else 128
    shared = kernel.shared + dynamic_shared + (0 if t.sm < 80 else 1024)
    shared = -(-shared // unit) * unit
    if shared and t.sm in _SHARED_KIB:
        most["shared memory"] = (_SHARED_KIB[t.sm] << 10) // shared
    blocks = min(most.values())
    limits = tuple([name for name, n in most.items() if n == blocks])
    return Occupancy(threads, blocks, blocks * warps, blocks * warps / t.max_warps, limits)
