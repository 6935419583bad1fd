"""Which registers are live at each instruction of machine code: the live ranges that a listing or a chart shows.

Works on decoded instructions, of any compiler: blocks are split at branch targets and after branches. R1 counts as
live to the end, as the caller's stack pointer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ir_format.flow import is_guarded, read_regs, written_regs
from ir_format.isa import facts
from ir_format.model import ZERO, Inst, Reg
from ir_format.record import NamedTuple
from ir_format.typed import Final

#: The files of a listing, in its order, and where their registers lie in a bit set.
FILES: Final = ("R", "P", "UR", "UP")
_BASE: Final = {"R": 0, "P": 256, "UR": 288, "UP": 544}
_SIZE: Final = {"R": 256, "P": 32, "UR": 256, "UP": 32}
_LEAVES: Final = facts.with_value("ctl", "exit", "ret", "trap")
_BRANCHES: Final = facts.with_value("ctl", "branch")
_STACK: Final = 1 << 1


class Life(NamedTuple):
    """Bit sets of registers at one instruction: what it reads, what it writes, what is live after it."""

    reads: int
    writes: int
    after: int

    @property
    def occupied(self) -> int:
        """What it touches, and what lives on over it."""
        return self.reads | self.writes | self.after


class Piece(NamedTuple):
    """A basic block: from its first instruction to after its last, and (following block, taken?) of each way out."""

    first: int
    end: int
    edges: tuple[tuple[int, bool], ...]


def of_file(mask: int, file: str) -> int:
    """The registers of one file, register 0 in bit 0."""
    return mask >> _BASE[file] & (1 << _SIZE[file]) - 1


def _mask(regs: Sequence[Reg]) -> int:
    mask = 0
    for r in regs:
        if r.file in _BASE and r.num != ZERO:
            mask |= ((1 << r.width) - 1) << (_BASE[r.file] + r.num + r.sub)
    return mask


def pieces(
    insts: Sequence[Inst | None], targets: Mapping[int, Sequence[int]], entries: Sequence[int] = ()
) -> list[Piece]:
    """The blocks of code. ``insts``: None for a word that is no instruction; ``targets``: instruction -> where it may
    jump to, as numbers of instructions; ``entries``: where functions begin."""
    starts = {0, *entries, *(t for ts in targets.values() for t in ts)}
    for n, i in enumerate(insts):
        if i is not None and (i.op in _LEAVES or i.op in _BRANCHES):
            starts.add(n + 1)
    order = sorted(s for s in starts if s < len(insts))
    number = {s: k for k, s in enumerate(order)}
    out = []
    for k, first in enumerate(order):
        end = order[k + 1] if k + 1 < len(order) else len(insts)
        last = insts[end - 1]
        edges = [(number[t], True) for t in dict.fromkeys(targets.get(end - 1, ())) if t in number]
        ends = last is not None and (last.op in _LEAVES or last.op in _BRANCHES)
        if k + 1 < len(order) and (not ends or (last is not None and is_guarded(last))):
            edges.append((k + 1, False))
        out.append(Piece(first, end, tuple(edges)))
    return out


def life_ranges(
    insts: Sequence[Inst | None], blocks: Sequence[Piece], calls: Mapping[int, int] | None = None
) -> list[Life]:
    """The registers at each instruction. ``calls``: a CALL -> the first instruction of the function that it calls, if
    that is in the same code: it reads what is live there, and writes what that function writes."""
    reads = [0 if i is None else _mask(read_regs(i)) for i in insts]
    writes = [0 if i is None else _mask(written_regs(i)) for i in insts]
    live_in = [_STACK] * len(blocks)
    preds: dict[int, list[int]] = {}
    for k, b in enumerate(blocks):
        for to, _ in b.edges:
            preds.setdefault(to, []).append(k)
    callee = _callees(blocks, calls or {}, writes, preds)
    kills = [0 if i is None or is_guarded(i) else w for i, w in zip(insts, writes)]
    todo = list(range(len(blocks)))
    waiting = set(todo)
    while todo:
        k = todo.pop()
        waiting.discard(k)
        live = _out_of(blocks[k], live_in)
        for n in range(blocks[k].end - 1, blocks[k].first - 1, -1):
            live = live & ~kills[n] | reads[n] | (live_in[callee[n]] if n in callee else 0)
        if live | _STACK != live_in[k]:
            live_in[k] = live | _STACK
            for p in preds.get(k, ()):
                if p not in waiting:
                    waiting.add(p)
                    todo.append(p)
    out = [Life(0, 0, 0)] * len(insts)
    for b in blocks:
        live = _out_of(b, live_in)
        for n in range(b.end - 1, b.first - 1, -1):
            read = reads[n] | (live_in[callee[n]] if n in callee else 0)
            out[n] = Life(read, writes[n], live)
            live = live & ~kills[n] | read
    if blocks:
        _begin(out, blocks, insts)
    return out


def _callees(
    blocks: Sequence[Piece], calls: Mapping[int, int], writes: list[int], preds: dict[int, list[int]]
) -> dict[int, int]:
    """CALL -> the block that it calls; what the function there writes is added to what the CALL writes."""
    number = {b.first: k for k, b in enumerate(blocks)}
    entries = sorted({to for to in calls.values() if to in number})
    written: dict[int, int] = {}
    for at, first in enumerate(entries):
        end = entries[at + 1] if at + 1 < len(entries) else len(writes)
        for n in range(first, end):
            written[first] = written.get(first, 0) | writes[n]
    out: dict[int, int] = {}
    for n, to in calls.items():
        if to in number:
            out[n] = number[to]
            writes[n] |= written[to]
            preds.setdefault(number[to], []).append(next(k for k, b in enumerate(blocks) if b.first <= n < b.end))
    return out


def _begin(out: list[Life], blocks: Sequence[Piece], insts: Sequence[Inst | None]) -> None:
    """R1 is not live before its first write."""
    for n in range(blocks[0].first, blocks[0].end):
        life = out[n]
        if life.writes & _STACK or life.reads & _STACK:
            break
        out[n] = Life(life.reads, life.writes, life.after & ~_STACK)


def _out_of(block: Piece, live_in: Sequence[int]) -> int:
    live = _STACK
    for to, _ in block.edges:
        live |= live_in[to]
    return live
