"""Control flow and liveness of a function: shared by the optimizer, the allocator, the scheduler and the checkers.

Blocks are named by *position* in ``Function.blocks`` here, not by id (``Cfg.index`` maps ids to positions).

Liveness works on *cells*: one cell is one 32-bit component of a virtual register (level ``ori``) or one physical
register (``allocated`` and later). Sets of cells are Python ints used as bitsets. Only cells that are live across a
block boundary get a bit, so a set stays small in a unit of 100,000 instructions, most of whose values live and die in
one block.

A guarded definition does not kill: the old value stays live across it. A cell is live only where a definition can reach
it, so a variable whose first write is guarded is not live up to the function's entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from struct import iter_unpack

from ir_format.isa import facts
from ir_format.model import INV, ZERO, Block, Const, Function, Inst, Label, Mem, Operand, Reg
from ir_format.typed import Final

JUMPS: Final = facts.with_value("ctl", "branch")
ENDS: Final = facts.with_value("ctl", "exit", "ret")

# First cell of each file at the levels with physical registers; a file has at most 256 registers.
PHYSICAL_BASE: Final = {"R": 0, "UR": 256, "P": 512, "UP": 528, "B": 544}


def is_guarded(inst: Inst) -> bool:
    """Whether the instruction may be skipped: its guard is not PT."""
    guard = inst.guard
    return guard is not None and (guard.num != ZERO or bool(guard.flags & INV))


def is_terminator(inst: Inst) -> bool:
    """Whether the instruction must be the last of its block."""
    op = inst.op
    return op in JUMPS or op in ENDS or (op == "BPT" and "TRAP" in inst.mods)


def falls_through(block: Block) -> bool:
    """Whether control can reach the next block of the layout from the end of this one."""
    if not block.insts:
        return True
    last = block.insts[-1]
    if not is_terminator(last):
        return True
    if is_guarded(last):
        return True
    if (
        last.op == "BRA"
    ):  # conditional forms: BRA.DIV UR4, BRA.CONV, BRA.U UP0, BRA P0; a constant true predicate stays unconditional
        if "DIV" in last.mods or "CONV" in last.mods:
            return True
        for operand in (*last.dsts, *last.srcs):
            if type(operand) is Reg and (operand.num != ZERO or operand.flags & INV):
                return True
    return False


def jump_targets(inst: Inst) -> tuple[int, ...]:
    """Block ids that a jump names (BRX lists its targets in ``uses``); empty for everything else."""
    if inst.op not in JUMPS:
        return ()
    return tuple(o.block for group in (inst.dsts, inst.srcs, inst.uses) for o in group if type(o) is Label)


class Cfg:
    """Control-flow graph over block positions. ``rpo``: reachable positions in reverse post-order, entry first."""

    __slots__ = ("index", "preds", "rpo", "succs")

    def __init__(
        self, index: dict[int, int], succs: list[tuple[int, ...]], preds: list[tuple[int, ...]], rpo: list[int]
    ) -> None:
        self.index = index
        self.succs = succs
        self.preds = preds
        self.rpo = rpo


def build_cfg(func: Function) -> Cfg:
    """The graph of ``func``; KeyError when a jump names a block that does not exist (the verifier refuses such a
    unit)."""
    blocks = func.blocks
    index = {block.id: pos for pos, block in enumerate(blocks)}
    succs: list[tuple[int, ...]] = []
    incoming: list[list[int]] = [[] for _ in blocks]
    for pos, block in enumerate(blocks):
        out: dict[int, None] = {}
        if block.insts:
            for target in jump_targets(block.insts[-1]):
                out[index[target]] = None
        if pos + 1 < len(blocks) and falls_through(block):
            out[pos + 1] = None
        succs.append(tuple(out))
        for succ in out:
            incoming[succ].append(pos)
    return Cfg(index, succs, [tuple(p) for p in incoming], _reverse_postorder(succs))


def _reverse_postorder(succs: list[tuple[int, ...]]) -> list[int]:
    if not succs:
        return []
    seen = bytearray(len(succs))
    seen[0] = 1
    order: list[int] = []
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(succs[0]))]
    while stack:
        node, rest = stack[-1]
        for succ in rest:
            if not seen[succ]:
                seen[succ] = 1
                stack.append((succ, iter(succs[succ])))
                break
        else:
            order.append(node)
            stack.pop()
    order.reverse()
    return order


def dominators(cfg: Cfg) -> list[int]:
    """Immediate dominator of every position; the entry's is itself, -1 for unreachable blocks (Cooper, Harvey,
    Kennedy)."""
    rank = [-1] * len(cfg.succs)
    for number, pos in enumerate(cfg.rpo):
        rank[pos] = number
    idom = [-1] * len(cfg.succs)
    if not cfg.rpo:
        return idom
    entry = cfg.rpo[0]
    idom[entry] = entry
    changed = True
    while changed:
        changed = False
        for pos in cfg.rpo[1:]:
            new = -1
            for pred in cfg.preds[pos]:
                if idom[pred] < 0:
                    continue
                if new < 0:
                    new = pred
                    continue
                other = pred
                while other != new:
                    while rank[other] > rank[new]:
                        other = idom[other]
                    while rank[new] > rank[other]:
                        new = idom[new]
            if idom[pos] != new:
                idom[pos] = new
                changed = True
    return idom


def post_dominators(cfg: Cfg) -> list[int]:
    """Immediate post-dominator of every position: ``len(cfg.succs)`` is the virtual exit after all ends, -1 if no end
    can be reached."""
    count = len(cfg.succs)
    exits = tuple(p for p in range(count) if not cfg.succs[p])
    succs = [*cfg.preds, exits]
    preds = [cfg.succs[p] or (count,) for p in range(count)] + [()]
    # The walk starts at the virtual exit: renumber it to 0 by swapping with position 0.
    swap = {0: count, count: 0}
    rename = [swap.get(p, p) for p in range(count + 1)]
    turned_succs = [tuple(rename[q] for q in succs[rename[p]]) for p in range(count + 1)]
    turned_preds = [tuple(rename[q] for q in preds[rename[p]]) for p in range(count + 1)]
    turned = Cfg({}, turned_succs, turned_preds, _reverse_postorder(turned_succs))
    idom = dominators(turned)
    return [rename[idom[rename[p]]] if idom[rename[p]] >= 0 else -1 for p in range(count)]


class DominatorTree:
    """The tree of immediate dominators, which answers in constant time whether one block dominates another: a block's
    descendants are one range of numbers. ``children``: by position, in reverse postorder; ``order``: reachable
    positions, each before those that it dominates."""

    __slots__ = ("_first", "_last", "children", "order")

    def __init__(self, cfg: Cfg, idom: list[int]) -> None:
        self.children: list[list[int]] = [[] for _ in idom]
        for pos in cfg.rpo[1:]:
            self.children[idom[pos]].append(pos)
        self._first = [-1] * len(idom)
        self._last = [-1] * len(idom)
        self.order: list[int] = []
        work = cfg.rpo[:1]
        while work:
            pos = work.pop()
            if pos < 0:
                self._last[~pos] = len(self.order)
                continue
            self._first[pos] = len(self.order)
            self.order.append(pos)
            work.append(~pos)
            work.extend(reversed(self.children[pos]))

    def dominates(self, upper: int, lower: int) -> bool:
        """Whether ``upper`` dominates ``lower``. A block dominates itself; an unreachable one no other."""
        return upper == lower or 0 <= self._first[upper] <= self._first[lower] < self._last[upper]

    def below(self, upper: int) -> list[int]:
        """The blocks that ``upper`` dominates, itself first."""
        return self.order[self._first[upper] : self._last[upper]]

    def size(self, upper: int) -> int:
        """How many blocks ``upper`` dominates, itself among them."""
        return self._last[upper] - self._first[upper]


class Loop:
    """A natural loop: header position, body positions (header included, sorted)."""

    __slots__ = ("body", "header")

    def __init__(self, header: int, body: list[int]) -> None:
        self.header = header
        self.body = body


def loops(cfg: Cfg, idom: list[int] | None = None) -> list[Loop]:
    """Natural loops, one per header, in order of header position. Cycles with several entries are not reported."""
    idom = dominators(cfg) if idom is None else idom
    tree = DominatorTree(cfg, idom)
    latches: dict[int, list[int]] = {}
    for pos in cfg.rpo:
        for succ in cfg.succs[pos]:
            if tree.dominates(succ, pos):
                latches.setdefault(succ, []).append(pos)
    result: list[Loop] = []
    for header in sorted(latches):
        body = {header}
        work = list(latches[header])
        while work:
            pos = work.pop()
            if pos not in body:
                body.add(pos)
                work.extend(p for p in cfg.preds[pos] if idom[p] >= 0)
        result.append(Loop(header, sorted(body)))
    return result


def loop_depths(cfg: Cfg, found: list[Loop] | None = None) -> list[int]:
    """Loop depth per position, 0 outside loops."""
    depth = [0] * len(cfg.succs)
    for loop in loops(cfg) if found is None else found:
        for pos in loop.body:
            depth[pos] += 1
    return depth


def read_regs(inst: Inst) -> list[Reg]:
    """Registers the instruction reads, RZ and PT left out: sources, addresses (also those printed on the left), guard,
    ``uses``. The list is kept until an operand is replaced: do not change it."""
    known = inst.known_reads
    guard = inst.guard
    if (
        known is not None
        and known[0] is inst.srcs
        and known[1] is inst.dsts
        and known[2] is guard
        and known[3] is inst.uses
    ):
        return known[4]
    found: list[Reg] = [] if guard is None or guard.num == ZERO else [guard]
    for operand in inst.srcs:
        if type(operand) is Reg:
            if operand.num != ZERO:
                found.append(operand)
        elif type(operand) is Mem or type(operand) is Const:
            _inner_regs(operand, found)
    for operand in inst.dsts:
        if type(operand) is not Reg and (type(operand) is Mem or type(operand) is Const):
            _inner_regs(operand, found)
    if inst.uses:
        for operand in inst.uses:
            if type(operand) is Reg and operand.num != ZERO:
                found.append(operand)
    inst.known_reads = inst.srcs, inst.dsts, guard, inst.uses, found
    return found


def _inner_regs(operand: Mem | Const, found: list[Reg]) -> None:
    if type(operand) is Const:
        if operand.ireg is not None and operand.ireg.num != ZERO:
            found.append(operand.ireg)
    elif type(operand) is Mem:
        for reg in (operand.base, operand.ubase, operand.desc):
            if reg is not None and reg.num != ZERO:
                found.append(reg)


def operand_regs(operand: Operand) -> list[Reg]:
    """Registers that a source, or an address on the left, reads."""
    if type(operand) is Reg:
        return [operand] if operand.num != ZERO else []
    found: list[Reg] = []
    if type(operand) is Mem or type(operand) is Const:
        _inner_regs(operand, found)
    return found


def written_regs(inst: Inst) -> list[Reg]:
    """Registers the instruction writes, RZ and PT left out: destinations and ``defs``."""
    dsts = inst.dsts
    if len(dsts) == 1 and not inst.defs:  # most instructions
        operand = dsts[0]
        return [operand] if type(operand) is Reg and operand.num != ZERO else []
    found: list[Reg] = []
    for operand in dsts:
        if type(operand) is Reg and operand.num != ZERO:
            found.append(operand)
    if inst.defs:
        for operand in inst.defs:
            if type(operand) is Reg and operand.num != ZERO:
                found.append(operand)
    return found


class Cells:
    """Numbering of cells. ``count`` cells; :meth:`first` gives the first cell that a register operand touches.
    ``base``: the first cell of each virtual register; None at physical levels."""

    __slots__ = ("_files", "_owner", "_vregs", "_widths", "base", "count")

    def __init__(self, func: Function, physical: bool = False) -> None:
        self._owner: list[tuple[int, int]] | None = None
        self._files: list[str] | None = None
        self._vregs = func.vregs
        self._widths: list[int] = [] if physical else [v.width for v in func.vregs]
        self.base: list[int] | None = None
        self.count = 560
        if not physical:
            base = list(accumulate(self._widths, initial=0))
            self.count = base.pop()
            self.base = base

    @property
    def owner(self) -> list[tuple[int, int]]:
        """Cell -> (virtual register, component); empty at physical levels."""
        owner = self._owner
        if owner is None:
            owner = self._owner = []
            for number, width in enumerate(self._widths):
                if width == 1:
                    owner.append((number, 0))
                else:
                    owner += [(number, part) for part in range(width)]
        return owner

    @property
    def files(self) -> list[str]:
        """Cell -> register file; empty at physical levels."""
        files = self._files
        if files is None:
            files = self._files = []
            for width, reg in zip(self._widths, self._vregs):
                if width == 1:
                    files.append(reg.file)
                else:
                    files += [reg.file] * width
        return files

    def first(self, reg: Reg) -> int:
        """First cell of the operand; it touches ``reg.width`` cells from there."""
        if self.base is None:
            return PHYSICAL_BASE[reg.file] + reg.num
        return self.base[reg.num] + reg.sub


class Liveness:
    """Result of :func:`liveness`. ``live_in``/``live_out``: per block position, bitsets over *global* cells; ``bit``:
    cell -> bit for global cells; ``names``: bit -> cell. A cell without a bit is never live across a block boundary."""

    __slots__ = ("bit", "cells", "live_in", "live_out", "names")

    def __init__(
        self, cells: Cells, live_in: list[int], live_out: list[int], bit: dict[int, int], names: list[int]
    ) -> None:
        self.cells = cells
        self.live_in = live_in
        self.live_out = live_out
        self.bit = bit
        self.names = names

    def members(self, bits: int) -> list[int]:
        """The cells of a bitset, in ascending order of bit."""
        names = self.names
        return [names[i] for i in bit_indices(bits)]

    def holds(self, bits: int, cell: int) -> bool:
        """Whether a bitset holds the cell."""
        at = self.bit.get(cell)
        return at is not None and bool(bits >> at & 1)

    def out_cells(self, pos: int) -> set[int]:
        """Cells live at the end of the block."""
        return set(self.members(self.live_out[pos]))

    def in_cells(self, pos: int) -> set[int]:
        """Cells live at the start of the block."""
        return set(self.members(self.live_in[pos]))

    def walk_back(self, block: Block, pos: int) -> Iterator[tuple[int, Inst, set[int]]]:
        """(index, instruction, cells live right after it) from the last instruction to the first. The set is reused:
        copy it to keep it."""
        live = self.out_cells(pos)
        first = self.cells.first
        for i in range(len(block.insts) - 1, -1, -1):
            inst = block.insts[i]
            yield i, inst, live
            if not is_guarded(inst):
                for reg in written_regs(inst):
                    cell = first(reg)
                    live.difference_update(range(cell, cell + reg.width))
            for reg in read_regs(inst):
                cell = first(reg)
                live.update(range(cell, cell + reg.width))


def bit_indices(bits: int) -> list[int]:
    """Indices of the set bits, ascending."""
    found: list[int] = []
    if bits.bit_count() * 16 < bits.bit_length():  # sparse: peel off the lowest bit word by word
        data = bits.to_bytes((bits.bit_length() + 63) // 64 * 8, "little")
        for offset, (word,) in enumerate(iter_unpack("<Q", data)):
            while word:
                low = word & -word
                found.append(offset * 64 + low.bit_length() - 1)
                word ^= low
        return found
    text = bin(bits)[:1:-1]
    at = text.find("1")
    while at >= 0:
        found.append(at)
        at = text.find("1", at + 1)
    return found


def _to_bits(cells: set[int], bit: dict[int, int], size: int) -> int:
    data = bytearray(size)
    for cell in cells:
        index = bit.get(cell)
        if index is not None:
            data[index >> 3] |= 1 << (index & 7)
    return int.from_bytes(data, "little")


def liveness(
    func: Function, cfg: Cfg | None = None, physical: bool = False, clip: bool = True, entry_cells: Iterable[int] = ()
) -> Liveness:
    """Live cells at the block boundaries of ``func``.

    ``clip`` keeps a cell out where no definition can reach (see the module text). ``entry_cells`` have a value at
    function entry that no instruction defines (fixed registers of a device function without FENTRY).
    """
    cfg = build_cfg(func) if cfg is None else cfg
    cells = Cells(func, physical)
    base = cells.base
    exposed: list[set[int]] = []
    killed: list[set[int]] = []
    written: list[set[int]] = []
    for block in func.blocks:
        use: set[int] = set()
        kill: set[int] = set()
        may: set[int] = set()
        for inst in block.insts:
            for reg in read_regs(inst):
                file, num, sub, width, _, _ = reg
                cell = PHYSICAL_BASE[file] + num if base is None else base[num] + sub
                if width == 1:
                    if cell not in kill:
                        use.add(cell)
                else:
                    use.update([c for c in range(cell, cell + width) if c not in kill])
            if inst.dsts or inst.defs:
                target = kill if inst.guard is None or not is_guarded(inst) else may
                for reg in written_regs(inst):
                    file, num, sub, width, _, _ = reg
                    cell = PHYSICAL_BASE[file] + num if base is None else base[num] + sub
                    if width == 1:
                        target.add(cell)
                    else:
                        target.update(range(cell, cell + width))
        exposed.append(use)
        killed.append(kill)
        written.append(may)
    names = sorted(set().union(*exposed)) if exposed else []
    bit = {cell: i for i, cell in enumerate(names)}
    size = (len(names) + 7) // 8
    gen = [_to_bits(s, bit, size) for s in exposed]
    kills = [_to_bits(s, bit, size) for s in killed]
    reached = set(cfg.rpo)
    order = cfg.rpo + [p for p in range(len(gen)) if p not in reached]
    live_out, live_in = solve(order[::-1], cfg.succs, cfg.preds, gen, kills)
    if clip:
        defs = [kills[i] | _to_bits(written[i], bit, size) for i in range(len(kills))]
        at_entry = _to_bits(set(entry_cells), bit, size)
        if defs:
            defs[0] |= at_entry
        reach_in, reach_out = solve(order, cfg.preds, cfg.succs, defs, None)
        if defs:
            reach_in[0] |= at_entry
        live_in = [a & b for a, b in zip(live_in, reach_in)]
        live_out = [a & b for a, b in zip(live_out, reach_out)]
    return Liveness(cells, live_in, live_out, bit, names)


def solve(
    order: list[int],
    sources: list[tuple[int, ...]],
    users: list[tuple[int, ...]],
    gen: list[int],
    kill: list[int] | None,
) -> tuple[list[int], list[int]]:
    """Least solution of ``after[p] = gen[p] | (before[p] & ~kill[p])``, ``before[p]`` = union of ``after`` over
    ``sources[p]``, for the positions in ``order``. Sweeps over ``order`` up to the fixed point; returns
    (before, after)."""
    count = len(gen)
    before = [0] * count
    after = list(gen)
    dirty = bytearray(b"\2") * count  # 2: not in ``order`` (an unreachable block), never solved
    for pos in order:
        dirty[pos] = 1
    left = len(order)
    while left:
        for pos in order:
            if not dirty[pos]:
                continue
            dirty[pos] = 0
            left -= 1
            new = 0
            for source in sources[pos]:
                new |= after[source]
            if new == before[pos]:
                continue
            before[pos] = new
            value = gen[pos] | (new if kill is None else new & ~kill[pos])
            if value != after[pos]:
                after[pos] = value
                for user in users[pos]:
                    if not dirty[user]:
                        dirty[user] = 1
                        left += 1
    return before, after
