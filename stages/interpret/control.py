"""Branches, calls, barriers and warp operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.ptx import CallTarget, LabelList, LabelRef, Pair, PtxInst, Reg, Sym
from stages.interpret.code import FUNCTION_BASE, Action, Code, Step, address, get, put
from stages.interpret.machine import BARRIER, DONE, LEVEL, MAX_DEPTH, RUN, WAIT, Frame, InterpreterError, Machine
from stages.interpret.rows import U64, Arr, Unsupported, signed

FULL: Final = 0xFFFFFFFF


def _lanes(m: Machine, v: Arr) -> Arr:
    """A value for each active thread."""
    return np.broadcast_to(v, (len(m.idx),))


# --------------------------------------------------------------------------- branches and calls


def branch(code: Code, step: Step, pc: int) -> Action:
    """bra"""
    target = step.inst.operands[0]
    assert isinstance(target, LabelRef)
    to = code.functions[step.function].labels[target.index]
    return lambda m: to


def branch_table(code: Code, step: Step, pc: int) -> Action:
    """brx.idx"""
    index, labels = step.inst.operands[:2]
    assert isinstance(labels, LabelList)
    f = code.functions[step.function]
    targets = np.array([f.labels[x] for x in labels.labels], np.int64)
    read = get(code, step.function, index)

    def run(m: Machine) -> int | None:
        k = _lanes(m, read(m) & U64(FULL)).astype(np.int64)
        if (k >= len(targets)).any():
            raise InterpreterError("undefined", "branch index beyond the table", step.inst.line, step.inst.opcode)
        m.key[m.idx] = (MAX_DEPTH - m.depth) * LEVEL + targets[k]
        return -1

    return run


def leave(code: Code, step: Step, pc: int) -> Action:
    """ret and exit"""
    inst = step.inst

    def run(m: Machine) -> int | None:
        if inst.op == "exit" or m.depth == 0:
            m.status[m.idx] = DONE
            release_warps(m, m.idx)
            release_blocks(m, np.unique(m.block_of[m.idx]))
            return -1
        frame = m.frame
        m.sp[m.idx] = m.base[m.idx]
        back = frame.back[m.idx]
        site = frame.site[m.idx]
        for place in np.unique(site):
            call = code.steps[int(place)]
            threads = m.idx[site == place]
            _return(m, code, step.function, call, threads)
        m.key[m.idx] = (MAX_DEPTH - m.depth + 1) * LEVEL + back
        return -1

    return run


def _return(m: Machine, code: Code, callee: int, call: Step, threads: Arr) -> None:
    """Copy results of a call to the caller's registers or parameter variables."""
    f = code.functions[callee]
    target = call.inst.operands[0]
    assert isinstance(target, CallTarget)
    outer = m.frames[m.depth - 1, call.function]
    inner_base = m.base
    for formal, actual in zip(f.function.rets, target.rets, strict=False):
        if formal.space == "reg":
            value: Any = m.regs[formal.reg][threads]
        else:
            value = m.local.load(m.local.offsets(inner_base[threads] + U64(f.places[formal.name].offset), formal.size, "return", threads), formal.size) if not formal.dims and formal.size <= 8 else None
        if isinstance(actual, Reg):
            r = outer.regs[actual.index]
            if r is m.junk or r is m.junk_bits:
                r = outer.regs[actual.index] = r.copy()
            r[threads] = value
        elif isinstance(actual, Sym):
            at = outer.base[threads] + U64(code.place(call.function, actual.name).offset)
            _copy(m, inner_base[threads] + U64(f.places[formal.name].offset), at, formal.size, threads)


def _copy(m: Machine, source: Arr, dest: Arr, size: int, threads: Arr) -> None:
    """Copy bytes of local memory."""
    a = m.local.offsets(source, 1, "argument", threads)
    b = m.local.offsets(dest, 1, "argument", threads)
    span = np.arange(size)
    m.local.data[b[:, None] + span] = m.local.data[a[:, None] + span]


def call(code: Code, step: Step, pc: int) -> Action:
    """call: direct, or by address"""
    target = step.inst.operands[0]
    assert isinstance(target, CallTarget)
    if isinstance(target.target, Sym):
        name = target.target.name
        if name not in code.by_name:
            return _system_call(code, step, name, target)
        k = code.by_name[name]
        return lambda m: _enter(m, code, step, pc, k, target, m.idx)
    read = get(code, step.function, target.target)

    def indirect(m: Machine) -> int | None:
        where = _lanes(m, read(m)).astype(np.int64)
        threads = m.idx
        for value in np.unique(where):
            k, rest = divmod(int(value) - FUNCTION_BASE, 16)
            if rest or not 0 <= k < len(code.functions):
                raise InterpreterError("undefined", "call of what is no function", step.inst.line, step.inst.opcode)
            group = threads[where == value]
            m.idx = m.act = group
            _enter(m, code, step, pc, k, target, group)
        return -1

    return indirect


def _enter(m: Machine, code: Code, step: Step, pc: int, k: int, target: CallTarget, threads: Arr) -> int:
    f = code.functions[k]
    depth = m.depth + 1
    if depth >= MAX_DEPTH:
        raise InterpreterError("limit", "calls nested too deep", step.inst.line, step.inst.opcode)
    values: list[tuple[Any, Any, Any]] = []
    for formal, actual in zip(f.function.params, target.args, strict=False):
        place = code.place(step.function, actual.name) if isinstance(actual, Sym) else None
        if place is not None and place.space == "local":
            values.append((formal, None, np.asarray(m.base[threads] + U64(place.offset))))
        else:
            values.append((formal, np.broadcast_to(get(code, step.function, actual)(m), threads.shape), None))
    frame = m.frames.get((depth, k))
    if frame is None:
        frame = m.frames[depth, k] = m.new_frame(f)
    frame.base[threads] = m.sp[threads]
    m.sp[threads] += U64(f.frame)
    if (m.sp[threads] > U64(m.local.size)).any():
        raise InterpreterError("limit", "local memory is used up by calls", step.inst.line, step.inst.opcode)
    frame.back[threads] = pc + 1
    frame.site = frame.site.copy() if frame.site.base is not None else frame.site
    frame.site[threads] = pc
    for formal, value, source in values:
        if formal.space == "reg":
            r = frame.regs[formal.reg]
            if r is m.junk or r is m.junk_bits:
                r = frame.regs[formal.reg] = r.copy()
            if source is not None:
                value = m.local.load(m.local.offsets(source, formal.size, "argument", threads), formal.size)
            width = f.widths[formal.reg]
            r[threads] = value & U64((1 << width) - 1)
            continue
        at = frame.base[threads] + U64(f.places[formal.name].offset)
        if source is not None:
            _copy(m, source, at, formal.size, threads)
        else:
            m.local.store(m.local.offsets(at, formal.size, "argument", threads), formal.size, value)
    m.key[threads] = (MAX_DEPTH - depth) * LEVEL + f.start
    return -1


def _system_call(code: Code, step: Step, name: str, target: CallTarget) -> Action:
    """Functions of the driver: printf says nothing and returns 0."""
    if name != "vprintf":
        raise Unsupported(f"call of '{name}'")
    result = target.rets[0] if target.rets else None

    def run(m: Machine) -> int | None:
        if isinstance(result, Sym):
            at = m.base[m.idx] + U64(code.place(step.function, result.name).offset)
            m.local.store(m.local.offsets(at, 4, "return", m.idx), 4, np.zeros(len(m.idx), U64))
        return None

    return run


def trap(code: Code, step: Step, pc: int) -> Action:
    """trap"""

    def run(m: Machine) -> int | None:
        raise InterpreterError("trap", f"trap by {m.name_of(int(m.idx[0]))}", step.inst.line, step.inst.opcode)

    return run


# --------------------------------------------------------------------------- warp operations


Warp = Callable[[Machine, Arr], None]


def _wait(m: Machine, masks: Arr, pc: int) -> Arr:
    """Threads arrive at a warp operation with their member masks; the threads that can go on now."""
    idx = m.idx
    if len(idx) == int(np.count_nonzero(m.status != DONE)) and (masks == U64(FULL)).all():
        return idx
    m.status[idx] = WAIT
    m.key[idx] = (MAX_DEPTH - m.depth) * LEVEL + pc
    m.wanted[idx] = masks
    return _ready(m, np.unique(idx // 32), (MAX_DEPTH - m.depth) * LEVEL + pc)


def _ready(m: Machine, warps: Arr, key: int) -> Arr:
    """Waiting threads at a place whose masks are complete, of some warps."""
    lanes = warps[:, None] * 32 + np.arange(32)
    here = (m.status[lanes] == WAIT) & (m.key[lanes] == key)
    bits = np.uint64(1) << np.arange(32, dtype=U64)
    arrived = (here * bits).sum(1).astype(U64)
    live = ((m.status[lanes] != DONE) * bits).sum(1).astype(U64)
    missing = m.wanted[lanes] & live[:, None] & ~arrived[:, None]
    return np.asarray(lanes[here & (missing == 0)])


def warp_operation(code: Code, step: Step, pc: int, member: Any, run: Warp) -> Action:
    """An operation of the threads of a warp that a member mask names."""
    read = get(code, step.function, member) if member is not None else None

    def arrive(m: Machine) -> int | None:
        masks = _lanes(m, read(m) & U64(FULL)) if read is not None else np.full(len(m.idx), FULL, U64)
        own = (masks >> (m.idx % 32).astype(U64)) & U64(1)
        if not own.all():
            raise InterpreterError("undefined", "a thread that its own member mask does not name", step.inst.line, step.inst.opcode)
        ready = _wait(m, masks, pc)
        if len(ready) == len(m.idx) and m.status[m.idx[0]] == RUN:
            m.wanted[m.idx] = masks
            run(m, ready)
            return None
        _fire(m, ready, run, pc)
        return -1

    step.inst.row = step.inst.row  # the row stays as parsed
    PENDING[id(code), pc] = run
    return arrive


PENDING: dict[tuple[int, int], Warp] = {}


def _fire(m: Machine, ready: Arr, run: Warp, pc: int) -> None:
    """Execute a warp operation of threads that waited, and let them go on."""
    if not len(ready):
        return
    key = int(m.key[ready[0]])
    depth = MAX_DEPTH - key // LEVEL
    function = m.code.steps[pc].function
    saved = (m.idx, m.act, m.frame, m.regs, m.base, m.depth)
    m.frame = m.frames[depth, function]
    m.regs, m.base, m.depth = m.frame.regs, m.frame.base, depth
    m.idx = m.act = ready
    run(m, ready)
    m.status[ready] = RUN
    m.key[ready] = key + 1
    m.idx, m.act, m.frame, m.regs, m.base, m.depth = saved


def release_warps(m: Machine, ended: Arr) -> bool:
    """After threads ended: others may have waited for them."""
    warps = np.unique(ended // 32)
    lanes = (warps[:, None] * 32 + np.arange(32)).ravel()
    waiting = lanes[m.status[lanes] == WAIT]
    fired = False
    for key in np.unique(m.key[waiting]):
        ready = _ready(m, np.unique(waiting[m.key[waiting] == key] // 32), int(key))
        if len(ready):
            pc = int(key) % LEVEL
            _fire(m, ready, PENDING[id(m.code), pc], pc)
            fired = True
    return fired


def release_all(m: Machine) -> bool:
    """When nothing runs: whatever can go on."""
    waiting = np.flatnonzero(m.status == WAIT)
    fired = bool(len(waiting)) and release_warps(m, waiting)
    blocks = np.unique(m.block_of[m.status == BARRIER])
    return (bool(len(blocks)) and release_blocks(m, blocks)) or fired


def spread(m: Machine, threads: Arr, v: Arr) -> tuple[Arr, Arr, Arr]:
    """Values of the given threads as (warps, 32) rows; which lanes are there; the warps' first threads."""
    v = np.broadcast_to(v, threads.shape)
    warps, where = np.unique(threads // 32, return_inverse=True)
    out = np.zeros((len(warps), 32), U64)
    there = np.zeros((len(warps), 32), np.bool_)
    out[where, threads % 32] = v
    there[where, threads % 32] = True
    return out, there, where


def shfl(code: Code, step: Step, pc: int) -> Action:
    """shfl.sync (and the form without a mask)"""
    inst = step.inst
    f = code.functions[step.function]
    dest = inst.operands[0]
    first, second = (dest.first, dest.second) if isinstance(dest, Pair) else (dest, None)
    to, to_p = put(f, first), put(f, second)
    a, b, c = (get(code, step.function, x) for x in inst.operands[1:4])
    member = inst.operands[4] if len(inst.operands) > 4 else None
    mode = next(x for x in inst.mods if x in ("up", "down", "bfly", "idx"))

    def run(m: Machine, threads: Arr) -> None:
        lane = threads % 32
        values, there, where = spread(m, threads, a(m) & U64(FULL))
        bv = (np.broadcast_to(b(m), threads.shape) & U64(31)).astype(np.int64)
        cv = np.broadcast_to(c(m), threads.shape)
        clamp = (cv & U64(31)).astype(np.int64)
        segment = ((cv >> U64(8)) & U64(31)).astype(np.int64)
        low = lane & segment
        high = low | (clamp & ~segment)
        if mode == "up":
            j = lane - bv
            valid = j >= high
        elif mode == "down":
            j = lane + bv
            valid = j <= high
        elif mode == "bfly":
            j = lane ^ bv
            valid = j <= high
        else:
            j = low | (bv & ~segment)
            valid = j <= high
        j = np.where(valid, j, lane)
        absent = ~there[where, j]
        got = np.where(absent, m.junk[threads], values[where, j])  # reading an inactive thread is undefined
        to(m, got)
        to_p(m, valid.astype(U64))

    return warp_operation(code, step, pc, member, run)


def vote(code: Code, step: Step, pc: int) -> Action:
    """vote.sync"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    a = get(code, step.function, inst.operands[1])
    member = inst.operands[2] if len(inst.operands) > 2 else None
    mode = next(x for x in inst.mods if x in ("all", "any", "uni", "ballot"))

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m))
        yes = (values != 0) & there
        bits = np.uint64(1) << np.arange(32, dtype=U64)
        ballot = (yes * bits).sum(1).astype(U64)
        every = (there * bits).sum(1).astype(U64)
        result = {
            "ballot": ballot,
            "any": (ballot != 0).astype(U64),
            "all": (ballot == every).astype(U64),
            "uni": ((ballot == every) | (ballot == 0)).astype(U64),
        }[mode]
        to(m, result[where])

    return warp_operation(code, step, pc, member, run)


def match(code: Code, step: Step, pc: int) -> Action:
    """match.any and match.all"""
    inst = step.inst
    f = code.functions[step.function]
    dest = inst.operands[0]
    first, second = (dest.first, dest.second) if isinstance(dest, Pair) else (dest, None)
    to, to_p = put(f, first), put(f, second)
    a = get(code, step.function, inst.operands[1])
    width = U64(FULL) if inst.types[-1] == "b32" else U64((1 << 64) - 1)
    every = inst.has("all")

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m) & width)
        same = (values[:, :, None] == values[:, None, :]) & there[:, :, None] & there[:, None, :]
        bits = np.uint64(1) << np.arange(32, dtype=U64)
        masks = (same * bits).sum(2).astype(U64)
        present = (there * bits).sum(1).astype(U64)
        got = masks[where, threads % 32]
        if every:
            whole = got == present[where]
            to(m, np.where(whole, got, U64(0)))
            to_p(m, whole.astype(U64))
        else:
            to(m, got)

    return warp_operation(code, step, pc, inst.operands[2], run)


def redux(code: Code, step: Step, pc: int) -> Action:
    """redux.sync"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    a = get(code, step.function, inst.operands[1])
    mode = next(x for x in inst.mods if x in ("add", "min", "max", "and", "or", "xor"))
    type_ = inst.types[-1]
    if type_ == "f32":
        return _redux_float(code, step, pc, to, a)

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m) & U64(FULL))
        v = signed(values, 32) if type_ == "s32" else values.astype(np.int64)
        neutral = {"add": 0, "or": 0, "xor": 0, "and": FULL, "min": 1 << 40, "max": -(1 << 40)}[mode]
        v = np.where(there, v, neutral)
        fn = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[mode]
        to(m, fn.reduce(v, axis=1)[where].view(U64) & U64(FULL))

    return warp_operation(code, step, pc, inst.operands[2], run)


def _redux_float(code: Code, step: Step, pc: int, to: Any, a: Any) -> Action:
    from stages.interpret.fpu import FLOAT

    inst = step.inst
    mods = tuple(x for x in inst.mods if x in ("min", "max", "abs", "NaN", "f32"))
    pick = FLOAT["min"](PtxInst("min" if inst.has("min") else "max", mods, ("f32",), ()))

    def run(m: Machine, threads: Arr) -> None:
        values, there, where = spread(m, threads, a(m) & U64(FULL))
        first = there.argmax(1)
        r = values[np.arange(len(values)), first]
        for k in range(32):
            r = np.where(there[:, k], pick(r, values[:, k]), r)
        to(m, r[where])

    return warp_operation(code, step, pc, inst.operands[2], run)


def elect(code: Code, step: Step, pc: int) -> Action:
    """elect.sync: the lowest thread (the manual leaves the choice open; guessed)"""
    inst = step.inst
    f = code.functions[step.function]
    dest = inst.operands[0]
    first, second = (dest.first, dest.second) if isinstance(dest, Pair) else (dest, None)
    to, to_p = put(f, first), put(f, second)

    def run(m: Machine, threads: Arr) -> None:
        _, there, where = spread(m, threads, np.zeros(1, U64))
        leader = there.argmax(1)[where]
        to(m, leader.astype(U64))
        to_p(m, (leader == threads % 32).astype(U64))

    return warp_operation(code, step, pc, inst.operands[1], run)


def activemask(code: Code, step: Step, pc: int) -> Action:
    """activemask: the threads that run together just now"""
    to = put(code.functions[step.function], step.inst.operands[0])

    def run(m: Machine) -> int | None:
        _, there, where = spread(m, m.idx, np.zeros(1, U64))
        bits = np.uint64(1) << np.arange(32, dtype=U64)
        to(m, (there * bits).sum(1).astype(U64)[where])
        return None

    return run


# --------------------------------------------------------------------------- barriers of a block


def barrier(code: Code, step: Step, pc: int) -> Action:
    """bar, barrier: sync, arrive, red; bar.warp.sync; barrier.cluster"""
    inst = step.inst
    mods = inst.mods
    if mods and mods[0] == "warp":
        return warp_operation(code, step, pc, inst.operands[0], lambda m, threads: None)
    if mods and mods[0] == "cluster":
        return _cluster_barrier(step, pc)
    arrive_only = "arrive" in mods
    red = next((x for x in mods if x in ("popc", "and", "or")), None)
    operands = list(inst.operands)
    dest = put(code.functions[step.function], operands.pop(0)) if red else None
    value = get(code, step.function, operands.pop()) if red else None
    number = get(code, step.function, operands[0])
    count = get(code, step.function, operands[1]) if len(operands) > 1 else None

    def run(m: Machine) -> int | None:
        idx = m.idx
        m.bar_id[idx] = _lanes(m, number(m)).astype(np.int64)
        m.bar_count[idx] = _lanes(m, count(m)).astype(np.int64) if count is not None else 0
        if value is not None:
            m.bar_value[idx] = _lanes(m, value(m))
        blocks = np.unique(m.block_of[idx])
        if arrive_only:
            for b in blocks:
                mine = idx[m.block_of[idx] == b]
                k = int(m.bar_id[mine[0]])
                m.arrived[int(b), k] = m.arrived.get((int(b), k), 0) + 32 * len(np.unique(mine // 32))
            m.bar_id[idx] = -1
            release_blocks(m, blocks)
            return None
        m.status[idx] = BARRIER
        m.key[idx] = (MAX_DEPTH - m.depth) * LEVEL + pc
        release_blocks(m, blocks)
        if (m.status[idx] == RUN).all() and (m.key[idx] == m.key[idx[0]]).all():
            return None
        return -1

    def finish(m: Machine, threads: Arr) -> None:
        if dest is None:
            return
        v = m.bar_value[threads] != 0
        r = {"popc": int(v.sum()), "and": int(v.all()), "or": int(v.any())}[red or "and"]
        dest(m, np.full(len(threads), r, U64))

    FINISH[id(code), pc] = finish
    return run


FINISH: dict[tuple[int, int], Warp] = {}


def release_blocks(m: Machine, blocks: Arr) -> bool:
    """Open every barrier that is complete."""
    per = m.warps * 32
    opened = False
    for b in blocks:
        lanes = slice(int(b) * per, int(b) * per + per)
        status = m.status[lanes]
        waiting = np.flatnonzero(status == BARRIER)
        if not len(waiting):
            continue
        waiting = waiting + lanes.start
        for k in np.unique(m.bar_id[waiting]):
            here = waiting[m.bar_id[waiting] == k]
            count = int(m.bar_count[here].max())
            extra = m.arrived.get((int(b), int(k)), 0)
            if k == CLUSTER:
                continue
            if count == 0:
                live = int(np.count_nonzero(status != DONE))
                full = len(here) + extra >= live
            else:
                full = 32 * len(np.unique(here // 32)) + extra >= count and _whole_warps(m, here)
            if full:
                m.arrived.pop((int(b), int(k)), None)
                _open(m, here)
                opened = True
    return opened


def _whole_warps(m: Machine, threads: Arr) -> bool:
    """Whether all live threads of the warps have arrived."""
    lanes = (np.unique(threads // 32)[:, None] * 32 + np.arange(32)).ravel()
    return int(np.count_nonzero(m.status[lanes] != DONE)) == len(threads)


def _open(m: Machine, threads: Arr) -> None:
    """Threads go on after a barrier."""
    saved = (m.idx, m.act, m.frame, m.regs, m.base, m.depth)
    keys = m.key[threads].copy()
    values = m.bar_value[threads]
    everyone = threads
    for key in np.unique(keys):
        group = everyone[keys == key]
        pc = int(key) % LEVEL
        depth = MAX_DEPTH - int(key) // LEVEL
        m.frame = m.frames[depth, m.code.steps[pc].function]
        m.regs, m.base, m.depth = m.frame.regs, m.frame.base, depth
        m.idx = m.act = group
        finish = FINISH.get((id(m.code), pc))
        if finish is not None and len(group) == len(everyone):
            finish(m, group)
        elif finish is not None:
            v = values != 0
            kept = m.bar_value[group].copy()
            m.bar_value[group] = v.all()
            finish(m, group)
            m.bar_value[group] = kept
        m.key[group] = key + 1
    m.status[threads] = RUN
    m.bar_id[threads] = -1
    m.idx, m.act, m.frame, m.regs, m.base, m.depth = saved


CLUSTER: Final = 1 << 20


def _cluster_barrier(step: Step, pc: int) -> Action:
    """barrier.cluster.arrive counts; wait holds until all threads of the cluster have arrived"""
    arrive = step.inst.has("arrive")

    def group_of(m: Machine, block: int) -> Arr:
        g = m.geometry
        size = g.cluster[0] * g.cluster[1] * g.cluster[2]
        if g.cluster[1] == 1 and g.cluster[2] == 1:
            first = block // size * size
            return np.arange(first, first + size)
        raise Unsupported("clusters of more than one dimension")

    def run(m: Machine) -> int | None:
        for b in np.unique(m.block_of[m.idx]):
            members = group_of(m, int(b))
            key = (int(members[0]), CLUSTER)
            mine = m.idx[np.isin(m.block_of[m.idx], [b])]
            if arrive:
                m.arrived[key] = m.arrived.get(key, 0) + len(mine)
                m.wanted[mine] = U64(m.arrived.get((int(members[0]), CLUSTER + 1), 0))
            else:
                m.status[mine] = BARRIER
                m.bar_id[mine] = CLUSTER
                m.key[mine] = (MAX_DEPTH - m.depth) * LEVEL + pc
            live = int(np.count_nonzero(m.status[np.isin(m.block_of, members)] != DONE))
            if m.arrived.get(key, 0) >= live:
                m.arrived[key] = 0
                phase = (int(members[0]), CLUSTER + 1)
                m.arrived[phase] = m.arrived.get(phase, 0) + 1
            now = m.arrived.get((int(members[0]), CLUSTER + 1), 0)
            waiting = np.flatnonzero((m.status == BARRIER) & (m.bar_id == CLUSTER) & np.isin(m.block_of, members))
            free = waiting[m.wanted[waiting] < U64(now)]
            if len(free):
                m.status[free] = RUN
                m.bar_id[free] = -1
                m.key[free] += 1
        return None if arrive else -1

    return run


ACTIONS: Final[dict[str, Callable[[Code, Step, int], Action]]] = {
    "bra": branch, "brx": branch_table, "call": call, "ret": leave, "exit": leave, "trap": trap, "bar": barrier, "barrier": barrier,
    "shfl": shfl, "vote": vote, "match": match, "redux": redux, "elect": elect, "activemask": activemask,
}  # fmt: skip
__all__ = ["ACTIONS", "Frame", "address"]
