"""Barrier objects in shared memory (mbarrier), address-space queries.

sm_80: two words. The lower is 2**30 - n for n expected arrivals; the upper counts from 2**31 - n up, so that its top bit flips with the last
arrival (measured: the code compares that bit). sm_90: one 64-bit word: bit 63 the phase, 43-62 the arrival counter (from
2**20 - n up), 21-41 the bytes that copies still owe, 1-20 the counter's start (measured from the word that init writes;
the byte count's place is guessed, nothing reads it).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ir_format.model import ZERO, Mem, Reg
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, InstFn, View, put
from stages.simulate.memory import LOCAL_HI, SHARED_HI, atomic
from stages.simulate.ops_memory import active, address64, cut, locate, mem_of
from stages.simulate.state import P_SINK

u32, u64 = np.uint32, np.uint64
_COUNT: Final = u64(0xFFFFF)
_BYTES: Final = u64(0x1FFFFF)


def _arrive80(old: Arr) -> Arr:
    """One arrival at sm_80's pair of words."""
    low, high = old & u64(0xFFFFFFFF), old >> u64(32)
    after = (high + u64(1)) & u64(0xFFFFFFFF)
    flipped = ((after ^ high) >> u64(31)) != 0
    start = (low + u64(0x40000000)) & u64(0x7FFFFFFF)
    after = np.where(flipped, (after & u64(0x80000000)) | start, after)
    return low | (after << u64(32))


def arrive_shared(b: Build) -> InstFn:
    """ATOMS.ARRIVE.64: one arrival; the old words."""
    place = locate(b, "shared", mem_of(b), 8, "atomic")
    rows = [b.dst(0), b.dst(1)]

    def run(v: View, m: Arr | None) -> None:
        act = active(m)
        memory, at = place(v, act)
        old = atomic(memory.views[8], at // 8, lambda o, k: _arrive80(o), np.zeros(len(at), u64), True)
        for i, row in enumerate(rows):
            v.U[row][slice(None) if act is None else act] = (old >> u64(32 * i)).astype(u32)

    return run


def _step90(old: Arr, arrivals: Arr, owed: Arr) -> Arr:
    """``arrivals`` arrivals and ``owed`` more (or fewer) bytes at sm_90's word."""
    start, phase = (old >> u64(1)) & _COUNT, old >> u64(63)
    count = (old >> u64(43)) & _COUNT
    waiting = ((old >> u64(21)) + owed) & _BYTES
    # The counter stands at 0 when all have arrived but bytes are still owed.
    count = np.where((count == 0) & (arrivals == 0), u64(0), (count + arrivals) & _COUNT)
    done = (count == 0) & (waiting == 0)
    phase = np.where(done, phase ^ u64(1), phase)
    count = np.where(done, start, count)
    return np.asarray((old & u64(1)) | (start << u64(1)) | (waiting << u64(21)) | (count << u64(43)) | (phase << u64(63)))


def syncs(b: Build) -> InstFn:
    """SYNCS: exchange (init), arrive, phase check."""
    mods = b.inst.mods
    target = mem_of(b)
    place = locate(b, "shared", target, 8, "atomic")
    others = [o for o in b.s if isinstance(o, Reg)]
    if "EXCH" in mods and "64" in mods:
        low, high = b.row(others[0], 0), b.row(others[0], 1)
        rows = [b.dst(0), b.dst(1)] if b.d else []

        def exchange(v: View, m: Arr | None) -> None:
            act = active(m)
            memory, at = place(v, act)
            new = cut(v.U[low], act).astype(u64) | (cut(v.U[high], act).astype(u64) << u64(32))
            old = memory.views[8][at // 8].copy()
            memory.views[8][at // 8] = new
            for i, row in enumerate(rows):
                v.U[row][slice(None) if act is None else act] = (old >> u64(32 * i)).astype(u32)

        return exchange
    if "PHASECHK" in mods:
        b.only("PHASECHK", "TRANS64", "TRYWAIT")
        state = b.raw(others[-1])
        pu = b.pdst(0)

        def check(v: View, m: Arr | None) -> None:
            act = active(m)
            memory, at = place(v, act)
            now = (memory.views[8][at // 8] >> u64(63)).astype(u32)
            passed = now != (cut(state(v), act) >> u32(31))
            v.P[pu][slice(None) if act is None else act] = passed

        return check
    kind = next((x for x in mods if len(x) == 4 and x[0] == "A" and x[2] == "T"), "")
    if "ARRIVE" not in mods or not kind or any(x not in ("ARRIVE", "TRANS64", "RED", kind) for x in mods):
        raise b.refuse()
    operand = b.raw(others[-1]) if others else None
    arrives, owes = kind[1], kind[3]
    rows = [b.dst(0), b.dst(1)] if b.d else []

    def arrive(v: View, m: Arr | None) -> None:
        act = active(m)
        memory, at = place(v, act)
        n = len(at)
        value = cut(operand(v), act).astype(u64) if operand is not None else np.zeros(n, u64)
        arrivals = value if arrives == "R" else np.full(n, int(arrives), u64)
        owed = value if owes == "R" else np.full(n, int(owes), u64)
        old = atomic(memory.views[8], at // 8, lambda o, k: _step90(o, arrivals[k], owed[k]), value, True)
        for i, row in enumerate(rows):
            v.U[row][slice(None) if act is None else act] = (old >> u64(32 * i)).astype(u32)

    return arrive


def arrives(b: Build) -> InstFn:
    """ARRIVES.LDGSTSBAR: a barrier arrival when this thread's copies are done, which they are at once."""
    b.only("LDGSTSBAR", "64", "ARVCNT", "TRANSCNT", "NOINC")
    place = locate(b, "shared", mem_of(b), 8, "atomic")
    old_form = b.ctx.sm < 90
    arrives_once = "ARVCNT" not in b.mods

    def run(v: View, m: Arr | None) -> None:
        if not arrives_once:
            return  # counts itself in and arrives: nothing changes
        act = active(m)
        memory, at = place(v, act)
        n = len(at)
        one, none = np.ones(n, u64), np.zeros(n, u64)
        atomic(memory.views[8], at // 8, lambda o, k: _arrive80(o) if old_form else _step90(o, one[k], none[k]), one, True)

    return run


def qspc(b: Build) -> InstFn:
    """QSPC.E.{G L S}: is the generic address in that space? (C: constant, which has no window here.)"""
    target = next((o for o in b.inst.srcs if isinstance(o, Mem)), None)
    if target is None:
        raise b.refuse("no address")
    get = address64(b, target, True)
    pu = b.pdst(0)
    space = b.pick("G", "L", "S", "C")
    if not space:
        raise b.refuse()

    def run(v: View, m: Arr | None) -> None:
        upper = get(v) >> u64(32)
        shared, local = upper == u64(SHARED_HI), upper == u64(LOCAL_HI)
        verdict = {"S": shared, "L": local, "G": ~shared & ~local, "C": np.zeros(v.n, np.bool_)}[space]
        put(v.P[pu], verdict, m)
        if b.d and not (isinstance(b.d[0], Reg) and b.d[0].num == ZERO):
            put(v.U[row], verdict.astype(u32), m)

    row = b.dst() if b.d else P_SINK
    return run


OPS: Final[dict[str, Builder]] = {"SYNCS": syncs, "ARRIVES": arrives, "QSPC": qspc}
