"""How an element of memory got its value: the PTX instructions of the thread that stored it, with the results that the
interpreter computed, and the instructions of a cubin from which its store gets the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.flow import read_regs, written_regs
from ir_format.model import Inst
from ir_format.ptx import Addr, PtxFunction, PtxInst, Reg
from ir_format.text import print_inst
from stages.check.executors import interpret, simulate, stores
from stages.check.launches import Launch
from stages.check.ptx_uses import defined, used
from stages.interpret.launch import Module

Arr = NDArray[Any]
#: Most lines shown: the last ones that matter.
SHOWN: Final = 16
#: Most steps recorded: a longer run is not explained.
MOST_STEPS: Final = 60_000
#: Instructions of a cubin that are searched before a store.
WINDOW: Final = 400


class _Did:
    """A step that ran: its number, the threads, the values of its registers then."""

    __slots__ = ("made", "step", "threads", "where")

    def __init__(self, step: int, threads: Arr, made: dict[int, Arr], where: Arr | None) -> None:
        self.step, self.threads, self.made, self.where = step, threads, made, where


def _address(m: Any, inst: PtxInst) -> Arr | None:
    """The address that the active threads access, if a register holds it."""
    at = next((o for o in inst.operands if isinstance(o, Addr)), None)
    if at is None or not isinstance(at.base, Reg):
        return None
    return np.asarray(m.regs[at.base.index][m.idx], np.uint64) + np.uint64(at.offset & (1 << 64) - 1)


@contextmanager
def _noting(steps: list[Any], log: list[_Did], heap: list[Any]) -> Iterator[None]:
    """While active, every step prepared by an earlier run records its results."""
    plain = [s.run for s in steps]

    def noted(k: int, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        inst = steps[k].inst

        def work(m: Any) -> Any:
            heap[:] = [m.heap, m]
            threads = np.array(m.idx)
            where = _address(m, inst) if inst.op in ("st", "red", "atom") else None
            regs = m.regs
            at = run(m)
            if len(log) < MOST_STEPS:
                log.append(_Did(k, threads, {r: np.array(regs[r]) for r in defined(inst)}, where))
            return at

        return work

    try:
        for k, run in enumerate(plain):
            if run is not None:
                steps[k].run = noted(k, run)
        yield
    finally:
        for step, run in zip(steps, plain, strict=True):
            step.run = run


def arithmetic(module: Module, launch: Launch, argument: int, byte: int) -> list[str]:
    """The instructions that led to a byte of a buffer, with their results, in the order in which they ran."""
    code = module.codes[launch.entry]
    writer = interpret(module, launch, track=True).writers.get(argument)
    last = int(writer[byte]) - 1 if writer is not None else -1
    if last < 0:
        return ["no instruction of the PTX stores there"]
    log: list[_Did] = []
    heap: list[Any] = []
    with _noting(code.steps, log, heap):
        interpret(module, launch)
    if not heap or len(log) >= MOST_STEPS:
        return []
    target = heap[0].address(len(code.globals) + list(launch.buffers).index(argument)) + byte
    found = _store(log, last, target)
    if found is None:
        return []
    at, thread = found
    step = code.steps[log[at].step]
    f = code.functions[step.function].function
    lines = [_told(f, step.inst, "")]
    needed = {(step.function, r) for r in used(step.inst)}
    for did in reversed(log[:at]):
        s = code.steps[did.step]
        mine = {(s.function, r) for r in did.made} & needed
        if mine and thread in did.threads:
            needed = (needed - mine) | {(s.function, r) for r in used(s.inst)}
            of = code.functions[s.function].function
            values = ", ".join(f"{of.regs[r].name} = {int(did.made[r][thread]):#x}" for _, r in sorted(mine))
            lines.append(_told(of, s.inst, values))
            if len(lines) >= SHOWN:
                break
    return [f"{heap[1].name_of(thread)}:", *lines[::-1]]


def _store(log: list[_Did], last: int, target: int) -> tuple[int, int] | None:
    """The last step that stored to an address, and its thread."""
    for at in range(len(log) - 1, -1, -1):
        did = log[at]
        if did.step == last and did.where is not None:
            below = target - did.where.astype(np.int64)
            near = np.flatnonzero((below >= 0) & (below < 32))
            if len(near):
                return at, int(did.threads[near[np.argmin(below[near])]])
    return None


def _told(f: PtxFunction, inst: PtxInst, values: str) -> str:
    from stages.parse.printer import print_instruction

    text = f"line {inst.line}: {print_instruction(f, inst)}"
    return f"  {text:<58} {values}".rstrip()


def machine_code(device: Any, launch: Launch, argument: int, byte: int) -> list[str]:
    """The instructions of a cubin from which the last store to a byte of a buffer gets its value, in order."""
    stored = stores(device, launch)
    store = None if stored is None else stored.last(argument, byte)
    if stored is None or store is None:
        return []
    program = stored.program
    lines = [_at(program, store)]
    needed = _cells(read_regs(program.inst(store)))
    for index in range(store - 1, max(store - WINDOW, -1), -1):
        inst = program.inst(index)
        made = _cells(written_regs(inst))
        if made & needed:
            if inst.guard is None or inst.guard.num < 0:
                needed -= made
            needed |= _cells(read_regs(inst))
            lines.append(_at(program, index))
            if len(lines) >= SHOWN or not needed:
                break
    return lines[::-1]


def _cells(regs: list[Any]) -> set[tuple[str, int]]:
    return {(r.file, r.num + k) for r in regs if r.num >= 0 and r.num != 1 for k in range(r.width)}


def _at(program: Any, index: int) -> str:
    name, offset = program.image.function_at(program.addresses[index])
    inst: Inst = program.inst(index)
    line = program.lines.ptx_line(program.addresses[index])
    bare = Inst(inst.op, inst.mods, inst.dsts, inst.srcs, inst.guard)
    return f"  {name} {offset:#06x}: {print_inst(bare, None)}" + (f"  (PTX line {line})" if line else "")


def explained(cosim: Any, launch: Launch, device: Any, loose: bool) -> tuple[Launch, list[str], tuple[int, int] | None]:
    """A launch for which a cubin computes other values, shrunk while it still does; expected and computed arithmetic;
    the first element that differs (argument, byte). ``cosim``: a :class:`stages.check.cosim.Cosim`."""
    small = cosim.shrink(launch, lambda x: cosim._differs(x, device, loose))
    base = interpret(cosim.module, small)
    got = simulate(device, small)
    stable = cosim._stable(small, base, quiet=True)
    cosim._wrong(small, base, got, stable, loose, device)  # differences within the tolerance do not count
    first = cosim._first(small, base, got, stable, loose)
    lines = [f"launch: {small.describe()}"]
    if first is None or not isinstance(first[0], int):
        return small, lines, None
    k, byte = first
    lines += ["expected, by the interpreter of PTX:", *(f"  {t}" for t in arithmetic(cosim.module, small, k, byte))]
    lines += ["computed by the cubin:", *(f"  {t}" for t in machine_code(device, small, k, byte))]
    return small, lines, (k, byte)
