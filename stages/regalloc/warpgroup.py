"""Registers of outstanding warpgroup products: no other instruction may touch them before the wait.

A product (HGMMA and the like) reads its A fragment, and reads and writes its accumulators, while the warp continues.
WARPGROUP.DEPBAR waits for groups of products; WARPGROUP.ARRIVE makes the registers that the warp wrote visible to them.
This pass follows the groups over the blocks. It inserts a wait before an instruction that touches a register of an
outstanding product, and an ARRIVE before a product that needs a register written since the last ARRIVE. ptxas does the
same and reports that the products are serialized. So copies that allocation left between products cost time, but the
values are right.

Post: every ARRIVE uses the registers that the products after it read, so that it waits for loads into them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ir_format.diag import CompileError
from ir_format.flow import Cfg, build_cfg, read_regs, written_regs
from ir_format.model import ZERO, Function, Imm, Inst, Operand, Reg, Unit
from ir_format.typed import Final
from stages.analysis.abi import callee
from stages.analysis.warpgroups import END, PRODUCTS, empty_product, end_at_last, is_empty

_MOST: Final = 8


class _State:
    """``groups[0]`` holds the registers of the products since the last end of a group; the others hold those of the
    ended groups, youngest first. ``written`` holds the registers written since the last ARRIVE, or all registers if
    there was none or a function was called after it. ``touched`` holds the registers of products since then.
    ``mixed``: only some threads of a diverged warp come with these products."""

    __slots__ = ("groups", "mixed", "shapes", "stale", "touched", "written")

    def __init__(
        self, groups: tuple[int, ...], written: int, shapes: frozenset[int], stale: int, touched: int, mixed: bool
    ) -> None:
        self.groups = groups
        self.written = written
        self.touched = touched
        self.mixed = mixed
        self.shapes = shapes  # accumulator blocks of outstanding products, as register masks
        self.stale = (
            stale  # since the last ARRIVE: 1 if the threads may have diverged or reconverged, 2 if a stage was left
        )

    def key(self) -> tuple[tuple[int, ...], int, frozenset[int], int, int, bool]:
        return self.groups, self.written, self.shapes, self.stale, self.touched, self.mixed


_EMPTY: Final = (0,) * (_MOST + 1)


def order_warpgroups(
    unit: Unit, relocatable: bool = False, divergent: Mapping[str, frozenset[int]] | None = None
) -> int:
    """The pass, on physical registers. Returns the number of inserted instructions; reports the reasons as ptxas
    does. ``divergent``: function -> ids of the blocks that a divergent group may execute
    (:mod:`stages.regalloc.divergent_blocks`)."""
    added = 0
    own = {f.name for f in unit.functions}
    for f in unit.functions:
        if any(i.op in PRODUCTS for b in f.blocks for i in b.insts):
            notes: list[tuple[int, int]] = []
            added += _function(f, notes, (divergent or {}).get(f.name, frozenset()))
            calls = [callee(i) for b in f.blocks for i in b.insts if i.op == "CALL"]
            if any(name not in own for name in calls):
                notes.append((7509 if relocatable else 7510, 0))
            unit.diags += _advisories(f.name, notes)
    return added


#: Advisories by number (texts and conditions measured): inserted instructions, and reasons why products are serialized.
_INJECTED: Final = {
    7517: "warpgroup.wait is injected in around line {} by compiler to allow use of registers defined by GMMA in "
    "function '{}'",
    7519: "warpgroup.arrive is injected in around line {} by compiler to allow use of registers in GMMA in function "
    "'{}'",
}
_SERIALIZED: Final = {
    7509: "the presence of Extern calls in the function '{}'",
    7510: "wgmma pipeline crossing function boundary at a function call in the function '{}'",
    7513: "non wgmma instructions defining input registers of a wgmma between start and end of the pipeline stage in "
    "the function '{}'",
    7514: "non wgmma instructions reading accumulator registers of  a wgmma between start and end of the pipeline "
    "stage in the function '{}'",
    7515: "non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline "
    "stage in the function '{}'",
    7518: "program dependence on compiler-inserted WG.DP in divergent path in the function '{}'",
    7520: "program dependence on compiler-inserted WG.AR in divergent path in the function '{}'",
}
#: Reasons that are given alone, in this order (measured: a function with several of them).
_ALONE: Final = (7520, 7518, 7509, 7510)


def _advisories(name: str, notes: list[tuple[int, int]]) -> list[tuple[str, str, int]]:
    """The insertions by line, then each reason for serialized products once; of some reasons no more than that."""
    alone = next((code for code in _ALONE if any(n == code for n, _ in notes)), 0)
    if alone:
        notes = [(alone, 0)]
    injected = sorted((n for n in dict.fromkeys(notes) if n[0] in _INJECTED), key=lambda n: -n[0])  # measured
    out = [f"(C{code}) " + _INJECTED[code].format(line, name) for code, line in injected]
    reasons = sorted({code for code, _ in notes if code in _SERIALIZED})
    out += [
        f"(C{code}) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        + _SERIALIZED[code].format(name)
        for code in reasons
    ]
    return [("info", text, 0) for text in out]


def _mask(regs: list[Reg]) -> int:
    mask = 0
    for r in regs:
        if r.file == "R" and r.num != ZERO:
            mask |= (1 << r.width) - 1 << r.num
    return mask


def _accumulators(inst: Inst) -> int:
    d = inst.dsts[0]
    c = inst.srcs[2 if type(inst.srcs[0]) is Reg else 1]
    assert isinstance(d, Reg) and isinstance(c, Reg)
    if c.num not in (ZERO, d.num):
        raise CompileError(f"{inst.op} without its accumulators in place", inst.line)
    return _mask([d])


def _function(func: Function, notes: list[tuple[int, int]], divergent: frozenset[int]) -> int:
    cfg = build_cfg(func)
    exits: dict[int, _State] = {}
    later = _read_later(func)
    added = 0
    dirty = set(cfg.rpo)
    while dirty:
        for pos in cfg.rpo:
            if pos not in dirty:
                continue
            dirty.discard(pos)
            block = func.blocks[pos]
            state = _entry(cfg, pos, exits, {p for p in cfg.preds[pos] if func.blocks[p].id in divergent})
            if block.id in divergent and any(func.blocks[p].id not in divergent for p in cfg.preds[pos]):
                state.stale = max(state.stale, 1)
            walk = _Walk(state, notes, block.id in divergent, later[pos])
            state = walk.run(block.insts)
            block.insts = walk.out
            added += walk.added
            old = exits.get(pos)
            if old is None or old.key() != state.key():
                exits[pos] = state
                dirty.update(cfg.succs[pos])
    for block in func.blocks:
        _name_registers(block.insts)
    return added


def _read_later(func: Function) -> list[int]:
    """For each block the registers that products of later blocks read, in the order of the code, up to the program's
    next wait."""
    out, found = [0] * len(func.blocks), 0
    for pos in range(len(func.blocks) - 1, -1, -1):
        out[pos] = found
        found = _read_behind(func.blocks[pos].insts, -1, found)
    return out


def _entry(cfg: Cfg, pos: int, exits: dict[int, _State], some: set[int]) -> _State:
    """The state in which a block begins. ``some``: predecessors that a divergent group may execute."""
    groups, written, shapes, stale, touched = list(_EMPTY), 0, frozenset[int](), 0, 0
    states = [exits[pred].groups for pred in cfg.preds[pos] if pred in exits]
    mixed = any(exits[pred].mixed for pred in cfg.preds[pos] if pred in exits)
    mixed |= bool(some) and any(any(g) for g in states) and not all(any(g) for g in states)
    for pred in cfg.preds[pos]:
        s = exits.get(pred)
        if s is not None:
            groups = [a | b for a, b in zip(groups, s.groups)]
            written |= s.written
            shapes |= s.shapes
            stale = max(stale, s.stale)
            touched |= s.touched
    return _State(tuple(groups), -1 if pos == cfg.rpo[0] else written, shapes, stale, touched, mixed)


class _Walk:
    """Follows the groups through one block and inserts the waits. ``out`` holds the new instructions. ``divergent``: a
    divergent group may execute the block; instructions inserted there have a separate reason. ``later``: registers that
    products of later blocks read."""

    __slots__ = (
        "added", "divergent", "drained", "groups", "later", "mixed", "notes", "out", "shapes", "stale", "touched",
        "written",
    )  # fmt: skip

    def __init__(self, state: _State, notes: list[tuple[int, int]], divergent: bool, later: int) -> None:
        self.later = later
        self.touched = state.touched
        self.mixed = state.mixed
        self.out: list[Inst] = []
        self.groups = list(state.groups)
        self.written = state.written
        self.shapes = state.shapes
        self.stale = state.stale
        self.divergent = divergent
        self.notes = notes
        self.added = 0
        self.drained = False  # whether nothing came since a wait for all groups that this pass inserted

    def run(self, insts: list[Inst]) -> _State:
        """Walk the block; returns the state at its end."""
        for at, inst in enumerate(insts):
            if inst.op in PRODUCTS:
                self._product(inst)
            elif inst.op == "WARPGROUP":
                if "ARRIVE" in inst.mods:
                    self.written = self.touched = 0
                    self.stale = 0
                else:
                    n = inst.srcs[1]
                    assert isinstance(n, Imm)
                    if not n.value and self.groups[0] and end_at_last(self.out):
                        self._end_group()  # the program ends no group: ptxas has the wait do so
                    if self.drained and inst.attrs:
                        self.added -= 1  # the program's wait comes after our own (measured: ptxas has one)
                        continue
                    self._wait(n.value)
                    self.drained = not inst.attrs
                self.out.append(inst)
            else:
                self._other(insts, at, inst)
        return _State(tuple(self.groups), self.written, self.shapes, self.stale, self.touched, self.mixed)

    def _product(self, inst: Inst) -> None:
        own = _accumulators(inst)
        reads = _mask(read_regs(inst)) | own
        others = 0
        for s in self.shapes:
            if s != own:
                others |= s
        if others & reads or self._busy() & own and own not in self.shapes:
            self.notes.append((7517, inst.line))
            self._wait_for_all(inst.line)
        # An empty product needs the ARRIVE that the products before it need again (measured: whatever they touch).
        wanted = self.touched if is_empty(inst) else reads
        unready = self.written == -1 or self.written & wanted
        if self.stale > 1 or self.stale and (self.divergent or unready):
            self.notes.append((7520, inst.line))
        if unready:
            self.notes.append((7519, inst.line))
            self.out.append(Inst("WARPGROUP", ("ARRIVE",), (), (), None, inst.line))
            self.added += 1
            self.written = self.touched = 0
        self.out.append(inst)
        self.drained = False
        self.touched |= reads
        self.groups[0] |= reads
        self.shapes |= {own} if own else frozenset()
        if inst.srcs[-1] == END:
            self._end_group()

    def _other(self, insts: list[Inst], at: int, inst: Inst) -> None:
        """An instruction that is neither a product nor a WARPGROUP: it may touch no register that is in use."""
        reads, writes = _mask(read_regs(inst)), _mask(written_regs(inst))
        accumulators = 0
        for s in self.shapes:
            accumulators |= s
        busy = self._busy()
        stage = self.groups[0] != 0
        call = inst.op == "CALL" and busy != 0  # the callee may save and restore an accumulator that is being written
        if call or busy & writes or accumulators & busy & (writes | reads):
            inside = self.groups[0] != 0 and _goes_on(insts, at)
            number = _reason(call, accumulators & busy & reads != 0, busy & writes, accumulators, inside)
            if number == 7515 and writes & _read_behind(insts, at, self.later):
                number = 0  # the ARRIVE of the product that reads it is named in its place (measured)
            if self.divergent or self.mixed:
                number = 7518
            if number:
                self.notes.append((number, inst.line))
            self._wait_for_all(inst.line)
        if inst.op == "CALL":
            self.stale = max(self.stale, 2 if stage else 1)
            self.written = -1
        self.written |= writes
        self.out.append(inst)

    def _busy(self) -> int:
        """The registers of all groups."""
        busy = 0
        for g in self.groups:
            busy |= g
        return busy

    def _wait(self, n: int) -> None:
        """At most ``n`` groups are outstanding from here on."""
        for k in range(n + 1, _MOST + 1):
            self.groups[k] = 0
        if not any(self.groups):
            self.shapes = frozenset()
            self.mixed = False

    def _wait_for_all(self, line: int) -> None:
        """Insert a wait for all groups. A group that is open ends at its last product."""
        if self.groups[0]:
            if not end_at_last(self.out):
                self.out.append(empty_product(line))
                self.added += 1
            self._end_group()
        self.out.append(Inst("WARPGROUP", ("DEPBAR", "LE"), (), (END, Imm("I", 0)), None, line))
        self.added += 1
        self._wait(0)
        self.drained = True

    def _end_group(self) -> None:
        self.groups[1:] = [self.groups[0], *self.groups[1:_MOST]]
        self.groups[0] = 0


def _reason(call: bool, reads: bool, writes: int, accumulators: int, inside: bool) -> int:
    """The number of the advisory: 7517 if one wait is enough."""
    if call:
        return 7510
    if writes & accumulators:
        return 7517 if reads else 7515
    if not reads and writes and inside:
        return 7513
    return 7514 if inside else 7517


def _read_behind(insts: list[Inst], at: int, later: int) -> int:
    """The registers that the products after an instruction of a block read, up to the program's next wait; ``later``:
    those of the next blocks."""
    found = 0
    for inst in insts[at + 1 :]:
        if inst.op in PRODUCTS:
            found |= _mask(read_regs(inst))
        elif inst.op == "WARPGROUP" and "DEPBAR" in inst.mods and inst.attrs:
            return found
    return found | later


def _goes_on(insts: list[Inst], at: int) -> bool:
    """Whether another product follows in the stage."""
    for inst in insts[at + 1 :]:
        if inst.op in PRODUCTS:
            return True
        if inst.op == "WARPGROUP":
            return False
    return False


def _name_registers(insts: list[Inst]) -> None:
    """Let each ARRIVE use the registers that the products up to the next WARPGROUP instruction read. DEPBAR can wait
    for no scoreboard, so it uses nothing."""
    at: Inst | None = None
    found: dict[int, Operand] = {}

    def close() -> None:
        if at is not None:
            at.uses = tuple(found.values())

    for inst in insts:
        if inst.op == "WARPGROUP":
            close()
            at = inst if "ARRIVE" in inst.mods else None
            inst.uses = ()
            found = {}
        elif inst.op in PRODUCTS and at is not None:
            for r in read_regs(inst):
                if r.file == "R" and r.num != ZERO:
                    found[r.num] = r._replace(flags=0, mod="")
    close()
