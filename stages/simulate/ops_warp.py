"""Instructions that read other lanes of the warp, or the thread's position: votes, shuffles, matches, special
registers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ir_format.model import ZERO, Imm, Name, Reg
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, put
from stages.simulate.state import P_SINK, SINK, ballot, spread, warp_any

u32, i32, i64 = np.uint32, np.int32, np.int64
#: What a shuffle delivers from an inactive lane (the manual leaves it undefined).
POISON: Final = u32(0xBAD0BEEF)


def group(v: View, m: Arr | None) -> Arr:
    """The active lanes as an array."""
    return np.ones(v.n, np.bool_) if m is None else m


def write_uniform(v: View, row: int, words: Arr, m: Arr | None) -> None:
    """Write one word per warp to a uniform row, for the active warps."""
    put(v.U[row], words.repeat(32), None if m is None else warp_any(m))


def is_ur(b: Build) -> bool:
    """Is the destination uniform?"""
    return bool(b.d) and isinstance(b.d[0], Reg) and b.d[0].file == "UR"


def vote(b: Build) -> InstFn:
    """d: the lanes whose predicate is true; Pu: ALL, ANY or EQ of the active lanes."""
    b.only("ALL", "ANY", "EQ", "U")
    mode = b.pick("ALL", "ANY", "EQ", default="ANY")
    pp = b.psrc(0, True)
    d = b.dst() if b.d else SINK
    pu = b.pdst(0)
    uniform = is_ur(b) or (bool(b.pd) and isinstance(b.pd[0], Reg) and b.pd[0].file == "UP")

    def run(v: View, m: Arr | None) -> None:
        act = group(v, m)
        words, alive = ballot(act & pp(v)), ballot(act)
        target = (None if m is None else warp_any(m)) if uniform else m
        if d != SINK:
            put(v.U[d], words.repeat(32), target)
        if pu != P_SINK:
            verdict = (
                words == alive if mode == "ALL" else words != 0 if mode == "ANY" else (words == alive) | (words == 0)
            )
            put(v.P[pu], verdict.repeat(32), target)

    return run


def shfl(b: Build) -> InstFn:
    """Shuffle: a from the lane given by mode, b and the clamp-and-mask word c; Pu: that lane is in range."""
    b.only("IDX", "UP", "DOWN", "BFLY")
    mode = b.pick("IDX", "UP", "DOWN", "BFLY", default="IDX")
    a, gb, gc = (b.u(o) for o in b.s[:3])
    d, pu = b.dst(), b.pdst(0)

    def run(v: View, m: Arr | None) -> None:
        act = group(v, m)
        lane = np.arange(v.n, dtype=i64) & 31
        word = gc(v)
        by, clamp, seg = (
            (gb(v) & u32(31)).astype(i64),
            (word & u32(31)).astype(i64),
            ((word >> u32(8)) & u32(31)).astype(i64),
        )
        least = lane & seg
        most = least | (clamp & ~seg)
        if mode == "UP":
            source = lane - by
            valid = source >= most
        elif mode == "DOWN":
            source = lane + by
            valid = source <= most
        elif mode == "BFLY":
            source = lane ^ by
            valid = source <= most
        else:
            source = least | (by & ~seg)
            valid = source <= most
        source = np.where(valid, source, lane)
        at = (np.arange(v.n, dtype=i64) & ~31) + (source & 31)
        values = np.where(act[at], a(v)[at], POISON)
        put(v.U[d], values, m)
        if pu != P_SINK:
            put(v.P[pu], valid, m)

    return run


def match(b: Build) -> InstFn:
    """MATCH.ANY: the lanes with the same value; MATCH.ALL: the lanes if all values are equal, else 0, and Pu."""
    b.only("ANY", "ALL", "U64")
    every = "ALL" in b.mods
    get: Get = b.q(b.s[0]) if "U64" in b.mods else b.u(b.s[0])
    d, pu = b.dst(), b.pdst(0)

    def run(v: View, m: Arr | None) -> None:
        act = group(v, m).reshape(-1, 32)
        values = get(v).reshape(-1, 32)
        same = (values[:, :, None] == values[:, None, :]) & act[:, None, :] & act[:, :, None]
        words = np.packbits(same.reshape(-1, 32), axis=1, bitorder="little").view(u32).ravel()
        if every:
            whole = ballot(act.ravel()).repeat(32)
            equal = words == whole
            all_equal = ~warp_any(~equal & act.ravel())
            words = np.where(all_equal, whole, u32(0))
            if pu != P_SINK:
                put(v.P[pu], all_equal, m)
        put(v.U[d], words, m)

    return run


_REDUCE: Final[dict[str, tuple[Any, int]]] = {
    "OR": (np.bitwise_or, 0), "AND": (np.bitwise_and, 0xFFFFFFFF), "XOR": (np.bitwise_xor, 0), "SUM": (np.add, 0),
}  # fmt: skip


def redux(b: Build) -> InstFn:
    """Reduction over the active lanes of each warp, into a uniform or vector register."""
    words = [w for m in b.inst.mods for w in m.split(".")]
    if any(w not in (*_REDUCE, "MIN", "MAX", "S32", "U32", "F32", "NAN", "ABS", "NANABS") for w in words):
        raise b.refuse()
    get = b.u(b.s[0])
    d = b.dst()
    uniform = is_ur(b)
    if "F32" in words:
        return _redux_float(b, words, d, uniform)
    op = next((w for w in words if w in _REDUCE or w in ("MIN", "MAX")), "AND")  # AND prints nothing
    signed = "S32" in words

    def run(v: View, m: Arr | None) -> None:
        act = group(v, m).reshape(-1, 32)
        x = get(v).reshape(-1, 32)
        if op in _REDUCE:
            fn, start = _REDUCE[op]
            result = fn.reduce(np.where(act, x, u32(start)), axis=1).astype(u32)
        else:
            y = x.view(i32).astype(i64) if signed else x.astype(i64)
            limit = i64(1 << 40)
            low = op == "MIN"
            result = (np.where(act, y, limit).min(axis=1) if low else np.where(act, y, -limit).max(axis=1)).astype(u32)
        if uniform:
            write_uniform(v, d, result, m)
        else:
            put(v.U[d], result.repeat(32), m)

    return run


def _redux_float(b: Build, words: list[str], d: int, uniform: bool) -> InstFn:
    get = b.f(b.s[0])
    low = "MIN" in words
    absolute = any("ABS" in w for w in words)
    nan = any(w in ("NAN", "NANABS") for w in words)

    def run(v: View, m: Arr | None) -> None:
        act = group(v, m).reshape(-1, 32)
        x = get(v).reshape(-1, 32)
        if absolute:
            x = np.abs(x)
        bad = x != x
        fill = np.float32(np.inf if low else -np.inf)
        y = np.where(act & ~bad, x, fill)
        r = y.min(axis=1) if low else y.max(axis=1)
        lost = (bad & act).any(axis=1) if nan else (bad | ~act).all(axis=1)
        result = np.where(lost, u32(0x7FFFFFFF), np.ascontiguousarray(r).view(u32))
        if uniform:
            write_uniform(v, d, result, m)
        else:
            put(v.U[d], result.repeat(32), m)

    return run


def first_active(values: Arr, act: Arr) -> Arr:
    """One word per warp: the value of its lowest active lane."""
    lanes = act.reshape(-1, 32).argmax(axis=1)
    return np.asarray(values.reshape(-1, 32)[np.arange(len(lanes)), lanes])


def r2ur(b: Build) -> InstFn:
    """A vector register's value to a uniform register: that of the first active lane (defined when all are equal)."""
    b.only("OR", "FILL", "BROADCAST")
    get = b.u(b.s[0])
    d = b.dst()
    pu = b.pdst(0)
    both = "OR" in b.mods
    if pu != P_SINK:
        # Pu: this lane's value is not the one taken; .OR also keeps what Pu was before (measured: loops that take the
        # values of a warp in turn).
        if both:
            b.reads.append(("P", pu))

        def turn(v: View, m: Arr | None) -> None:
            values = get(v)
            words = first_active(values, group(v, m))
            other = values != words.repeat(32)
            put(v.P[pu], other | v.P[pu] if both else other, m)
            write_uniform(v, d, words, m)

        return turn

    def run(v: View, m: Arr | None) -> None:
        act = group(v, m)
        if both:
            words = np.bitwise_or.reduce(np.where(act, get(v), u32(0)).reshape(-1, 32), axis=1)
        else:
            words = first_active(get(v), act)
        write_uniform(v, d, words, m)

    return run


#: Registers that change while the kernel runs, and which 32 bits of the cycle count they show.
_CLOCKS: Final = {
    "SR_CLOCKLO": 0,
    "SR_CLOCKHI": 32,
    "SR_CLOCK": 0,
    "SR_GLOBALTIMERLO": 0,
    "SR_GLOBALTIMERHI": 32,
    "SR_GLOBALTIMER": 0,
}


def _clock(b: Build, shift: int, wide: bool) -> InstFn:
    launch = b.ctx.launch
    out = [b.dst(i) for i in range(2 if wide else 1)]

    def run(v: View, m: Arr | None) -> None:
        now = launch.tick() >> shift
        for i, row in enumerate(out):
            put(v.U[row], np.full(v.n, (now >> (32 * i)) & 0xFFFFFFFF, u32), m)

    return run


def s2r(b: Build) -> InstFn:
    """Read a special register, 32 bits (CS2R: 64 unless .32)."""
    b.only("32", "64")
    name = next((o.name for o in b.inst.srcs if isinstance(o, Name)), "")
    if not name and b.s and isinstance(b.s[0], Reg) and b.s[0].num == ZERO:
        name = "SRZ"
    wide = b.inst.op in ("CS2R", "CS2UR") and "32" not in b.mods
    if name in _CLOCKS:
        return _clock(b, _CLOCKS[name], wide)
    rows = b.ctx.launch.special(name, b)
    out = [b.dst(i) for i in range(2 if wide else 1)]
    sources = list(rows)[: len(out)] + [255] * (len(out) - len(rows))
    uniform = is_ur(b)

    def run(v: View, m: Arr | None) -> None:
        mm = (None if m is None else warp_any(m)) if uniform else m
        for row, source in zip(out, sources, strict=True):
            put(v.U[row], v.U[source], mm)

    return run


def elect(b: Build) -> InstFn:
    """Pu true in one lane of the group: its lowest; d its number."""
    pu = b.pdst(0)
    d = b.dst() if b.d else SINK
    membership = b.u(b.s[0]) if b.s else None

    def run(v: View, m: Arr | None) -> None:
        act = group(v, m)
        if membership is not None:
            act = act & spread(first_active(membership(v), act))
        lanes = act.reshape(-1, 32).argmax(axis=1).astype(u32)
        chosen = (np.arange(v.n, dtype=np.int64) & 31) == lanes.repeat(32)
        put(v.P[pu], chosen & act, m)
        if d != SINK:
            write_uniform(v, d, lanes, m)

    return run


def b2r(b: Build) -> InstFn:
    """State of CTA barriers into a register: .RESULT is the predicate left by BAR.RED."""
    b.only("RESULT", "WARP")
    if "RESULT" not in b.mods:
        raise b.refuse()
    d = b.dst() if b.d else SINK
    pu = b.pdst(0)
    launch = b.ctx.launch

    def run(v: View, m: Arr | None) -> None:
        values = launch.bar_result[v.lo : v.hi]
        put(v.U[d], values, m)
        if pu != P_SINK:
            put(v.P[pu], values != 0, m)

    return run


def rpcmov(b: Build) -> InstFn:
    """RPCMOV: halves of a 64-bit register of each thread that returns use; the code keeps values in it (measured)."""
    b.only("32")
    name = next((o.name for o in (*b.inst.dsts, *b.inst.srcs) if isinstance(o, Name)), "")
    if name not in ("Rpc.LO", "Rpc.HI"):
        raise b.refuse()
    kept = b.ctx.lanes.row(name, lambda lanes: np.zeros(lanes.n, u32))
    if isinstance(b.inst.dsts[0], Reg):
        d = b.dst()
        b.reads.append(("U", kept))
        return lambda v, m: put(v.U[d], v.U[kept], m)
    get = b.u(b.s[0])
    b.writes.append(("U", kept))
    return lambda v, m: put(v.U[kept], get(v), m)


def movm(b: Build) -> InstFn:
    """Transpose an 8x8 matrix of 16-bit elements, held by four lanes per row."""
    get = b.u(b.s[0])
    if "U4TO8" in b.mods:
        return _movm_nibbles(b, get)
    b.only("16", "MT88")

    def run(x: Arr) -> Arr:
        tiles = np.ascontiguousarray(x).view(np.uint16).reshape(-1, 8, 8)
        return np.ascontiguousarray(tiles.transpose(0, 2, 1)).view(u32).reshape(-1)

    return b.emit(run, [get])


def _movm_nibbles(b: Build, get: Get) -> InstFn:
    """U4TO8.M832: 8 rows of 32 nibbles, four lanes per row, to bytes: columns 0-15 in the first register, 16-31 in the
    second (measured: the code of four-bit products on sm_120 feeds the bytes to byte products)."""
    b.only("U4TO8", "M832")
    outs = [b.dst(0), b.dst(1)]

    def run(v: View, m: Arr | None) -> None:
        nibbles = (get(v)[:, None] >> (u32(4) * np.arange(8, dtype=u32))) & u32(15)
        rows = np.ascontiguousarray(nibbles.astype(np.uint8).reshape(-1, 2, 16)).view(u32).reshape(-1, 2, 4)
        for i, row in enumerate(outs):
            put(v.U[row], np.ascontiguousarray(rows[:, i]).reshape(-1), m)

    return run


def lepc(b: Build) -> InstFn:
    """The 64-bit address of an instruction: the next one or a target."""
    target = next((o for o in b.inst.srcs if isinstance(o, Imm)), None)
    address = target.value if target is not None else b.address + 16
    constants = [b.ctx.lanes.constant(address & 0xFFFFFFFF), b.ctx.lanes.constant(address >> 32)]
    rows = [b.dst(0), b.dst(1)]

    def run(v: View, m: Arr | None) -> None:
        for row, constant in zip(rows, constants, strict=True):
            put(v.U[row], v.U[constant], m)

    return run


OPS: Final[dict[str, Builder]] = {
    "VOTE": vote, "VOTEU": vote, "SHFL": shfl, "MATCH": match, "REDUX": redux, "CREDUX": redux, "R2UR": r2ur,
    "S2R": s2r, "S2UR": s2r,
    "CS2R": s2r, "CS2UR": s2r, "ELECT": elect, "B2R": b2r, "MOVM": movm, "LEPC": lepc, "RPCMOV": rpcmov,
}  # fmt: skip
