"""Branches that all threads of a warp take alike, as far as data show it: forward dataflow of the registers that differ
between threads of a warp (divergence analysis).

The convergence checker uses it only where it would otherwise report something. Threads differ in their numbers, their
own memory, the results of atomics, values from other threads, and all that is computed from these. A load from one
address gives one value (measured: ptxas assumes so). Values that differ only because threads came by different paths
are not seen: such a branch counts as uniform, and less is reported. A call of a function in the same section makes what
that function writes different (the loop around ptxas's square root keeps its counter).
"""

from __future__ import annotations

from typing import Final

from ir_format.flow import PHYSICAL_BASE
from ir_format.isa import facts
from ir_format.model import ZERO, Inst, Mem, Name, Operand, Reg
from stages.disasm.cubin import WORD
from stages.disasm.listing import Decoded

_ALL: Final = (1 << PHYSICAL_BASE["UP"]) - 1
_OWN: Final = facts.having("varies") - facts.having("sreg")
_SPECIAL: Final = facts.having("sreg")
_FILES: Final = ("R", "P")


def _cells(o: Operand) -> int:
    if type(o) is Mem:
        return _cells(o.base) | _cells(o.base) << 1 if o.base is not None else 0  # a pair, where it is one
    if type(o) is Reg and o.file in _FILES and o.num != ZERO:
        return (1 << max(o.width, 1)) - 1 << PHYSICAL_BASE[o.file] + o.num
    return 0


def _own(inst: Inst) -> bool:
    """Whether results differ between threads no matter what the operands are."""
    if inst.op in _OWN:
        return True
    if inst.op in _SPECIAL:
        return any(
            type(o) is Name
            and any(x in o.name for x in ("TID", "LANEID", "MASK", "CLOCK", "TIMER"))
            and "CTAID" not in o.name
            for o in inst.srcs
        )
    return False


def uniform_branches(
    items: list[Decoded], blocks: dict[int, list[int]], succs: list[tuple[int, ...]], entry: int
) -> set[int]:
    """Guarded branches of a function whose predicate is uniform; registers count as divergent at its start."""
    state: dict[int, int] = {entry: _ALL}
    work = [entry]
    out: set[int] = set()
    differing: set[int] = set()
    writes: dict[int, int] = {}  # first instruction of a function -> what it writes
    while work:
        b = work.pop()
        now = state[b]
        run = blocks[b]
        for n in run:
            inst = items[n].inst
            if inst is not None and inst.op == "CALL":
                now |= written_below(items, succs, n, writes)
            else:
                now = _step(inst, now)
        last = items[run[-1]].inst
        if last is not None and last.op == "BRA" and len(succs[run[-1]]) > 1:
            reads = [last.guard] if last.guard is not None else []
            reads += [o for o in last.srcs if type(o) is Reg]
            if any(_cells(o) & now for o in reads):
                differing.add(run[-1])
            out.add(run[-1])
        for s in succs[run[-1]]:
            if s in blocks and (s not in state or now & ~state[s]):
                state[s] = state.get(s, 0) | now
                work.append(s)
    return out - differing


def written_below(items: list[Decoded], succs: list[tuple[int, ...]], call: int, known: dict[int, int]) -> int:
    """The cells that a called function, or one that it calls, may write; all of them if the function is elsewhere."""
    begin = items[call].target // WORD
    if begin in known:
        return known[begin]
    total = 0
    seen: set[int] = set()
    work = [call]
    calls = {call}
    while work:
        n = work.pop()
        inst = items[n].inst
        if inst is not None and inst.op == "CALL":
            to = items[n].target
            if to < 0 or to // WORD >= len(items) or "ABS" in inst.mods:
                return _ALL
            following = (to // WORD, *(succs[n] if n not in calls else ()))
        elif inst is not None and inst.op.startswith(("BRX", "JMX")) and not succs[n]:
            return _ALL
        else:
            following = succs[n] if inst is None or inst.op != "RET" else ()
        if inst is not None and n not in calls:
            for o in inst.dsts:
                total |= _cells(o)
        for s in following:
            if s not in seen:
                seen.add(s)
                work.append(s)
    known[begin] = total
    return total


def _step(inst: Inst | None, now: int) -> int:
    """Divergent cells after an instruction."""
    if inst is None:
        return now
    written = 0
    for o in inst.dsts:
        written |= _cells(o)
    if not written:
        return now
    read = 0
    for o in inst.srcs:
        read |= _cells(o)
    guard = _cells(inst.guard) if inst.guard is not None else 0
    if _own(inst) or (read | guard) & now:
        return now | written
    return now if guard else now & ~written
