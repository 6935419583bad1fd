"""Barrier objects in shared memory (mbarrier; their words: :mod:`ops_barrier_words`), address-space queries."""

from __future__ import annotations

from typing import Final

import numpy as np

from ir_format.features import has
from ir_format.model import ZERO, Mem, Reg
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, InstFn, View, put
from stages.simulate.memory import CONST_HI, LOCAL_HI, SHARED_HI, atomic
from stages.simulate.ops_barrier_words import arrive80, step90
from stages.simulate.ops_memory import active, address64, cut, locate, mem_of
from stages.simulate.state import P_SINK

u32, u64 = np.uint32, np.uint64


def arrive_shared(b: Build) -> InstFn:
    """ATOMS.ARRIVE.64: one arrival; returns the old words."""
    place = locate(b, "shared", mem_of(b), 8, "atomic")
    rows = [b.dst(0), b.dst(1)]

    def run(v: View, m: Arr | None) -> None:
        act = active(m)
        memory, at = place(v, act)
        old = atomic(memory.views[8], at // 8, lambda o, k: arrive80(o), np.zeros(len(at), u64), True)
        for i, row in enumerate(rows):
            v.U[row][slice(None) if act is None else act] = (old >> u64(32 * i)).astype(u32)

    return run


def syncs(b: Build) -> InstFn:
    """SYNCS: exchange (init), arrive, phase check."""
    mods = b.inst.mods
    if mods[:2] == ("CCTL", "IVALL"):
        return lambda v, m: None  # the barrier's state is in memory, not in the unit
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
        pu, copies = b.pdst(0), b.ctx.copies

        def check(v: View, m: Arr | None) -> None:
            act = active(m)
            memory, at = place(v, act)
            if copies is not None:
                copies.ask(at)
            now = (memory.views[8][at // 8] >> u64(63)).astype(u32)
            passed = now != (cut(state(v), act) >> u32(31))
            v.P[pu][slice(None) if act is None else act] = passed

        return check
    if mods[:1] == ("LD",):
        b.only("LD", "64")
        loaded = [b.dst(0), b.dst(1)]

        def load(v: View, m: Arr | None) -> None:
            act = active(m)
            memory, at = place(v, act)
            word = memory.views[8][at // 8]
            for i, row in enumerate(loaded):
                v.U[row][slice(None) if act is None else act] = (word >> u64(32 * i)).astype(u32)

        return load
    if mods[:2] == ("CCTL", "IV"):
        return lambda v, m: None  # the barrier is no longer used
    kind = next((x for x in mods if len(x) == 4 and x[0] == "A" and x[2] == "T"), "A1TR")
    # TMASK: the phase must not complete (the program promises that it does not); OPTOUT: the thread leaves the barrier.
    if "ARRIVE" not in mods or any(x not in ("ARRIVE", "TRANS64", "RED", "TMASK", "OPTOUT", kind) for x in mods):
        raise b.refuse()
    leave, together = "OPTOUT" in mods, "TMASK" in mods
    operand = b.raw(others[-1]) if others else None
    arrives, owes = kind[1], kind[3]
    rows = [b.dst(0), b.dst(1)] if b.d else []

    def arrive(v: View, m: Arr | None) -> None:
        act = active(m)
        memory, at = place(v, act)
        n = len(at)
        value = cut(operand(v), act).astype(u64) if operand is not None else np.zeros(n, u64)
        arrivals = value if arrives == "R" else np.full(n, int(arrives), u64)
        # R: that many more bytes to wait for; X: that many have arrived (measured: the code of expect_tx and
        # complete_tx)
        owed = value if owes == "R" else u64(0) - value if owes == "X" else np.full(n, int(owes), u64)
        before = memory.views[8][at // 8].copy()
        old = atomic(memory.views[8], at // 8, lambda o, k: step90(o, arrivals[k], owed[k], leave), value, True)
        # all lanes see the word as it was, and which lanes arrived with them (measured: the code counts those below
        # itself)
        if together:
            old = (before & u64(0xFFFFFFFF00000000)) | _partners(v, act, at)
        for i, row in enumerate(rows):
            v.U[row][slice(None) if act is None else act] = (old >> u64(32 * i)).astype(u32)

    return arrive


def _partners(v: View, act: Arr | None, at: Arr) -> Arr:
    """For each active lane, the lanes of its warp that name the same address."""
    lanes = np.arange(v.n) if act is None else act
    key = lanes // 32 * (1 << 40) + at
    _, group = np.unique(key, return_inverse=True)
    words = np.zeros(int(group.max(initial=-1)) + 1, u64)
    np.bitwise_or.at(words, group, u64(1) << (lanes % 32).astype(u64))
    return np.asarray(words[group])


def arrives(b: Build) -> InstFn:
    """ARRIVES.LDGSTSBAR: a barrier arrival when this thread's copies are done, which they are at once."""
    b.only("LDGSTSBAR", "64", "ARVCNT", "TRANSCNT", "NOINC")
    place = locate(b, "shared", mem_of(b), 8, "atomic")
    old_form = has(b.ctx.sm, "arrivals-counted-first")
    arrives_once = "TRANSCNT" not in b.mods

    def run(v: View, m: Arr | None) -> None:
        act = active(m)
        memory, at = place(v, act)
        n = len(at)
        one, none = np.ones(n, u64), np.zeros(n, u64)
        # TRANSCNT: the code has added itself to the bytes to wait for (measured); here it arrives.
        arrived, owed = (one, none) if arrives_once else (none, none - one)
        if old_form and not arrives_once:
            return
        atomic(
            memory.views[8],
            at // 8,
            lambda o, k: arrive80(o) if old_form else step90(o, arrived[k], owed[k]),
            one,
            True,
        )

    return run


def qspc(b: Build) -> InstFn:
    """QSPC.E.{G L S}: is the generic address in that space? (C: constants; D: shared memory of the cluster, which the
    code asks about if S is false.)"""
    target = next((o for o in b.inst.srcs if isinstance(o, Mem)), None)
    if target is None:
        raise b.refuse("no address")
    get = address64(b, target, True)
    pu = b.pdst(0)
    space = b.pick("G", "L", "S", "C", "D")
    if not space:
        raise b.refuse()

    def run(v: View, m: Arr | None) -> None:
        upper = get(v) >> u64(32)
        shared, local = upper == u64(SHARED_HI), upper == u64(LOCAL_HI)
        verdict = {"S": shared, "L": local, "G": ~shared & ~local, "C": upper == u64(CONST_HI), "D": shared}[space]
        put(v.P[pu], verdict, m)
        if b.d and not (isinstance(b.d[0], Reg) and b.d[0].num == ZERO):
            put(v.U[row], verdict.astype(u32), m)

    row = b.dst() if b.d else P_SINK
    return run


OPS: Final[dict[str, Builder]] = {"SYNCS": syncs, "USYNCS": syncs, "ARRIVES": arrives, "QSPC": qspc}
