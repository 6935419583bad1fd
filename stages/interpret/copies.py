"""Copies to and from shared memory."""

from __future__ import annotations

import numpy as np

from ir_format.ptx import Addr, PtxInst, Reg
from stages.interpret import bulk, tensormap
from stages.interpret.code import Action, Code, Step, address, get
from stages.interpret.loads import resolve
from stages.interpret.machine import Machine
from stages.interpret.memory import aligned
from stages.interpret.rows import U64, Unsupported, unsigned


def cp(code: Code, step: Step, pc: int) -> Action:
    """cp.async: the copy is made at once (the manual allows any time before the wait)"""
    inst = step.inst
    if "mbarrier" in inst.mods:
        return _copy_arrives(code, step, pc)
    if "bulk" in inst.mods:
        if "prefetch" in inst.mods or "commit_group" in inst.mods or "wait_group" in inst.mods:
            return lambda m: None
        return tensormap.copy(code, step, pc) if "tensor" in inst.mods else bulk.copy(code, step, pc)
    if "commit_group" in inst.mods or "wait_group" in inst.mods or "wait_all" in inst.mods:
        return lambda m: None
    dest, source, amount = inst.operands[:3]
    if not (isinstance(dest, Addr) and isinstance(source, Addr)):
        raise Unsupported(inst.opcode)
    to, frm = address(code, step.function, dest), address(code, step.function, source)
    size_of = get(code, step.function, amount)
    extra = [x for x in inst.operands[3:]]
    if inst.has("L2::cache_hint") and extra:
        extra.pop()
    ignored = get(code, step.function, extra[0]) if extra else None
    register_type = code.functions[step.function].widths
    is_pred = bool(extra) and isinstance(extra[0], Reg) and register_type[extra[0].index] == 1

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        size = int(size_of(m).ravel()[0])
        have = np.full(len(threads), size, np.int64)
        if ignored is not None:
            v = np.broadcast_to(ignored(m), threads.shape)
            have = np.where(v != 0, 0, size) if is_pred else np.minimum(unsigned(v, 32).astype(np.int64), size)
        target = resolve(m, "shared", to(m), size, "copy", threads)[0][1]
        rows = np.zeros((len(threads), size), np.uint8)
        some = np.flatnonzero(have > 0)
        if len(some):
            a = np.broadcast_to(frm(m), threads.shape)[some]
            off = m.heap.offsets(a, 1, "copy")
            aligned(off, size, "copy")  # the manual requires it, no matter how few bytes are read
            m.heap.offsets(a + (have[some] - 1).astype(U64), 1, "copy")
            span = np.arange(size)
            valid = span < have[some][:, None]
            rows[some] = np.where(valid, m.heap.data[np.minimum(off[:, None] + span, len(m.heap.data) - 1)], 0)
        m.shared.data[target[:, None] + np.arange(size)] = rows
        return None

    return run


def _copy_arrives(code: Code, step: Step, pc: int) -> Action:
    """cp.async.mbarrier.arrive: the copies are done, so it arrives; without .noinc it first adds itself to the pending
    count."""
    inst = step.inst
    if not inst.has("noinc"):
        return lambda m: None
    from stages.interpret.mbarrier import mbarrier

    mods = ("arrive", *[x for x in inst.mods if x.startswith("shared")], "b64")
    return mbarrier(code, Step(PtxInst("mbarrier", mods, ("b64",), inst.operands, line=inst.line), step.function), pc)
