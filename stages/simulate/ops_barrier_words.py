"""The words of barrier objects (mbarrier) in shared memory.

sm_80: two words. The lower is 2**30 - n for n expected arrivals; the upper counts from 2**31 - n up, so that its top
bit flips with the last arrival (measured: the code compares that bit). sm_90: one 64-bit word: bit 63 the phase, 43-62
the arrival counter (from 2**20 - n up), 21-41 the bytes that copies still owe, 1-20 the counter's start (measured from
the word that init writes; the byte count's place is guessed, nothing reads it).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from stages.simulate.arr import Arr

u64 = np.uint64
_COUNT: Final = u64(0xFFFFF)
_BYTES: Final = u64(0x1FFFFF)


def arrive80(old: Arr) -> Arr:
    """One arrival at sm_80's pair of words."""
    low, high = old & u64(0xFFFFFFFF), old >> u64(32)
    after = (high + u64(1)) & u64(0xFFFFFFFF)
    flipped = ((after ^ high) >> u64(31)) != 0
    start = (low + u64(0x40000000)) & u64(0x7FFFFFFF)
    after = np.where(flipped, (after & u64(0x80000000)) | start, after)
    return low | (after << u64(32))


def step90(old: Arr, arrivals: Arr, owed: Arr, leave: bool = False) -> Arr:
    """``arrivals`` arrivals and ``owed`` more (or fewer) bytes at sm_90's word; ``leave``: the next phases expect so
    many fewer."""
    start, phase = (old >> u64(1)) & _COUNT, old >> u64(63)
    if leave:
        start = (start + arrivals) & _COUNT
    count = (old >> u64(43)) & _COUNT
    waiting = ((old >> u64(21)) + owed) & _BYTES
    # The counter is 0 when all have arrived but bytes are still owed.
    count = np.where((count == 0) & (arrivals == 0), u64(0), (count + arrivals) & _COUNT)
    done = (count == 0) & (waiting == 0)
    phase = np.where(done, phase ^ u64(1), phase)
    count = np.where(done, start, count)
    return np.asarray(
        (old & u64(1)) | (start << u64(1)) | (waiting << u64(21)) | (count << u64(43)) | (phase << u64(63))
    )
