"""The dependence graph of a block: which instructions must stay in order, and how many cycles apart.

Edges come from registers of every file (guards, predicates and convergence barriers too), from memory accesses by
space, and from instructions that nothing may cross. Register distances come from :mod:`ir_format.hazards`. A result
with a scoreboard counts with its estimated latency, because only the order depends on it:
:mod:`stages.schedule.control` makes the final order safe.

Pre-allocation scheduling (:mod:`stages.optimize.late.list_schedule`) uses the same builder on virtual registers, with
another :class:`Model`. The graph stays linear in the size of the block: an access is compared with a bounded number of
earlier ones, then it acts as a fence of its space.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter

from ir_format.flow import PHYSICAL_BASE
from ir_format.hazards import Access, Hazards
from ir_format.hazards.model import B0, FILE_OF
from ir_format.isa import facts
from ir_format.isa.sregs import CLOCKS
from ir_format.model import ZERO, Inst, Mem, Name, Reg
from ir_format.typed import Final, Protocol

#: No instruction moves over these. Reads of the clock belong to them, so that a program measures the code between two.
WALLS: Final = facts.having("wall")
#: Memory accesses do not move over these; other instructions do.
FENCES: Final = facts.having("fence")


def fences(inst: Inst) -> bool:
    """Whether no memory access may move over the instruction: :data:`FENCES`, and instructions with ``attrs["fence"]``
    (the NOP after an acquire, or instead of a barrier of a converged warp)."""
    return inst.op in FENCES or (inst.attrs is not None and "fence" in inst.attrs)


#: Convergent instructions: threads of a warp exchange values or wait for each other. They keep their order, but for
#: exchanges among themselves: the same threads execute all of a block between two of the others, so that chains of them
#: overlap (ptxas reorders them too: measured). Matrix products, their loads and stores are not among them: a warp
#: executes them converged (ptxas reorders them too: measured).
CONVERGENT: Final = facts.having("synchronizing")
_EXCHANGING: Final = facts.exchanging()
_SPECIAL: Final = facts.having("sreg")
_STRONG: Final = ("STRONG", "MMIO")


def ordered(inst: Inst) -> bool:
    """Whether an access is volatile or atomic: such accesses are neither merged nor reordered. Accesses to shared
    memory have ``attrs["strong"]`` instead of a field."""
    return any(m.startswith(_STRONG) for m in inst.mods) or (inst.attrs is not None and "strong" in inst.attrs)


_READ: Final = facts.loads()
_WRITE: Final = facts.stores()
_BOTH: Final = facts.atomics()
_SIZES: Final = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_SPACES: Final = ("global", "shared", "local", "generic")
_WINDOW: Final = 24

#: What neither touches memory nor orders it.
_COMPUTES: Final = facts.having("pure") - frozenset((*_READ, *_WRITE, *_BOTH)) - FENCES

Place = tuple[object, ...]


class Graph:
    """``succs[i]``: (later node, cycles); ``waits[i]``: number of edges into ``i``; ``begin[i]``: the cycle from which
    on what ``i`` reads from before the block is there."""

    __slots__ = ("begin", "succs", "waits")

    def __init__(self, count: int) -> None:
        self.begin = [0] * count
        self.succs: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.waits = [0] * count

    def add(self, earlier: int, later: int, cycles: int) -> None:
        """``later`` follows ``earlier``, by an estimated distance of at least ``cycles``."""
        self.succs[earlier].append((later, cycles))
        self.waits[later] += 1

    def critical_paths(self) -> list[int]:
        """The length in cycles of the critical path from each node to the end of the block."""
        height = [0] * len(self.succs)
        for node in range(len(height) - 1, -1, -1):
            best = 0
            for later, cycles in self.succs[node]:
                reach = height[later] + cycles
                if reach > best:
                    best = reach
            height[node] = best
        return height


class ReadyList:
    """The ready list of list scheduling: the nodes whose predecessors have all been scheduled. ``earliest[n]`` is the
    cycle at which all operands of ``n`` are available."""

    __slots__ = ("_succs", "_waits", "earliest")

    def __init__(self, graph: Graph) -> None:
        self._succs = graph.succs
        self._waits = graph.waits[:]
        self.earliest = graph.begin[:]

    def first(self) -> list[int]:
        """The nodes without predecessors."""
        return [n for n, count in enumerate(self._waits) if not count]

    def waiting(self, node: int) -> bool:
        """Whether a predecessor of the node has not been scheduled."""
        return self._waits[node] > 0

    def release(self, node: int, now: int) -> list[int]:
        """Schedule ``node`` at cycle ``now``; returns the nodes that become ready."""
        waits, earliest = self._waits, self.earliest
        free: list[int] = []
        for later, cycles in self._succs[node]:
            at = now + cycles
            if at > earliest[later]:
                earliest[later] = at
            waits[later] -= 1
            if not waits[later]:
                free.append(later)
        return free


def as_allowed(order: list[int], allow: Callable[[], bool]) -> list[int]:
    """An order as far as --limit allows it: each node that now precedes one that preceded it is a rewrite.
    The nodes after the last rewrite keep their order, which breaks no dependence: all that they depend on comes
    earlier."""
    placed = bytearray(len(order))
    first = 0  # of the nodes that are not placed
    for at, node in enumerate(order):
        while first < len(placed) and placed[first]:
            first += 1
        if node != first and not allow():
            return order[:at] + [n for n in range(first, len(order)) if not placed[n]]
        placed[node] = 1
    return order


def is_wall(inst: Inst) -> bool:
    """Whether nothing may move over the instruction."""
    if inst.op in WALLS:
        return True
    return inst.op in _SPECIAL and any(type(o) is Name and o.name.startswith(CLOCKS) for o in inst.srcs)


class _Space:
    """The accesses of one memory space since the last fence: (node, place), newest last. ``floor`` is the node that all
    later accesses must follow."""

    __slots__ = ("floor", "loads", "stores")

    def __init__(self) -> None:
        self.floor = -1
        self.loads: list[tuple[int, Place | None]] = []
        self.stores: list[tuple[int, Place | None]] = []


class Memory:
    """The order of memory accesses. A place is (base identity, first byte, end), or None if it may be anywhere in its
    space."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.spaces = {name: _Space() for name in _SPACES}
        self.strong = -1

    def load(self, node: int, space: str, place: Place | None) -> None:
        for other in _aliases(space):
            s = self.spaces[other]
            if s.floor >= 0:
                self.graph.add(s.floor, node, 1)
            for at, where in s.stores:
                if not _disjoint(place, where):
                    self.graph.add(at, node, 1)
        self.spaces[space].loads.append((node, place))

    def store(self, node: int, space: str, place: Place | None) -> None:
        own = self.spaces[space]
        whole = len(own.loads) + len(own.stores) > _WINDOW
        if whole:
            place = None
        for other in _aliases(space):
            s = self.spaces[other]
            if s.floor >= 0:
                self.graph.add(s.floor, node, 1)
            for at, where in (*s.stores, *s.loads):
                if not _disjoint(place, where):
                    self.graph.add(at, node, 1)
        if whole:
            own.loads = []
            own.stores = []
        own.stores.append((node, place))

    def order(self, node: int) -> None:
        """Keep the order among atomic and volatile accesses."""
        if self.strong >= 0:
            self.graph.add(self.strong, node, 1)
        self.strong = node

    def fence(self, node: int) -> None:
        """No access moves over ``node``."""
        for s in self.spaces.values():
            if s.floor >= 0:
                self.graph.add(s.floor, node, 1)
            for at, _ in (*s.stores, *s.loads):
                self.graph.add(at, node, 1)
            s.floor = node
            s.loads = []
            s.stores = []


def _aliases(space: str) -> tuple[str, ...]:
    return _SPACES if space == "generic" else (space, "generic")


def _disjoint(a: Place | None, b: Place | None) -> bool:
    return a is not None and b is not None and a[0] == b[0] and (a[2] <= b[1] or b[2] <= a[1])  # type: ignore[operator]


class Model(Protocol):
    """What the graph needs to know about registers. Physical registers have distances by role (:class:`Physical`),
    virtual ones estimates (:mod:`stages.optimize.late.list_schedule`). ``read[n]`` and ``written[n]`` are the cells
    that ``n`` reads and writes. ``late[n]`` is the distance from ``n`` to the
    readers of its results, or -1 if it depends on the reader; ``after[n]`` the distance to the next writer of its
    results;
    ``until[n]`` the distance from ``n`` as a reader to the next writer. ``coalesced`` maps (node, cell written) to the
    cell that the value should share a register with: the readers of that cell stay before the node."""

    read: list[list[int]]
    written: list[list[int]]
    late: list[int]
    after: list[int]
    until: list[int]
    coalesced: dict[tuple[int, int], int]

    def distance(self, writer: int, result: int, reader: int, operand: int) -> int:
        """The cycles from a result to a reader, if ``late`` does not tell: indices into ``written[writer]`` and
        ``read[reader]``."""

    def is_wall(self, node: int) -> bool:
        """Whether no instruction may move over this one."""

    def sinks(self, wall: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that may move after ``wall`` all the same."""

    def is_passed(self, wall: int) -> bool:
        """Whether some later nodes may move before ``wall`` all the same."""

    def rises(self, node: int) -> bool:
        """Whether a node is among those."""

    def first_cell(self, reg: Reg) -> int:
        """The first cell of a register operand."""


_CELL: Final = itemgetter(0)


class Physical:
    """Physical registers, with the distances of :mod:`ir_format.hazards`."""

    __slots__ = ("_accesses", "_hazards", "_insts", "after", "coalesced", "late", "read", "until", "written")

    def __init__(self, insts: list[Inst], accesses: list[Access], hazards: Hazards) -> None:
        self._insts = insts
        self._accesses = accesses
        self._hazards = hazards
        self.read = [list(map(_CELL, a.reads)) for a in accesses]
        self.written = [list(map(_CELL, a.writes)) for a in accesses]
        self.late = [a.latency if a.board_w else -1 for a in accesses]
        self.after = [a.latency if a.board_w else 1 for a in accesses]
        self.until = [12 if a.board_r else 1 for a in accesses]
        self.coalesced: dict[tuple[int, int], int] = {}

    def distance(self, writer: int, result: int, reader: int, operand: int) -> int:
        """See :class:`Model`."""
        cell, role, _ = self._accesses[reader].reads[operand]
        key = FILE_OF[cell], self._accesses[writer].writes[result][1], role
        found = self._hazards.raw_cycles.get(key)
        if found is None:
            found = self._hazards.raw_cycles[key] = self._hazards.cell("raw", *key).cycles
        return found

    def is_wall(self, node: int) -> bool:
        """See :class:`Model`."""
        inst, a = self._insts[node], self._accesses[node]
        return is_wall(inst) or (inst.op != "BSSY" and (a.write_mask | a.read_mask) >> B0 != 0)

    def sinks(self, wall: int, nodes: list[int]) -> list[int]:
        """See :class:`Model`."""
        return []

    def is_passed(self, wall: int) -> bool:
        """See :class:`Model`."""
        return False

    def rises(self, node: int) -> bool:
        """See :class:`Model`."""
        return False

    def first_cell(self, reg: Reg) -> int:
        """See :class:`Model`."""
        return PHYSICAL_BASE[reg.file] + reg.num


#: Results at least so late are still under way in the next block, and the instructions before its end among which they
#: are looked for.
UNDER_WAY: Final = 100
UNDER_WAY_TAIL: Final = 48


def under_way(read: list[list[int]], written: list[list[int]], late: list[int]) -> dict[int, int]:
    """The cells whose results are under way at the end of a block, and the cycles until they are there; of its last
    instructions: cells that each reads and writes, and the latency of its results."""
    found: dict[int, int] = {}
    touched: set[int] = set()
    for n in range(len(late) - 1, -1, -1):
        if late[n] >= UNDER_WAY:
            for c in written[n]:
                if c not in touched:
                    found[c] = late[n]
        touched.update(read[n], written[n])
    return found


def build_graph(insts: list[Inst], model: Model, coming: Mapping[int, int] | None = None) -> Graph:
    """The graph of a block's instructions in program order. ``coming``: cells whose values are under way at its start,
    and the cycles until they are there."""
    graph = Graph(len(insts))
    add, succs = graph.add, graph.succs
    memory = Memory(graph)
    late, after, until, coalesced = model.late, model.after, model.until, model.coalesced
    read, written = model.read, model.written
    writers: dict[int, int] = {}
    results: dict[int, int] = {}  # which result of its writer a cell is
    readers: dict[int, list[int]] = {}
    wall = firm = convergent = -1  # firm: the last wall that no later node may pass
    exchanges: list[int] = []  # since the last other convergent instruction
    free = 0  # the first node after the last wall
    loose: list[int] = []  # nodes before the wall that may move after it
    for node, inst in enumerate(insts):
        above = firm if firm != wall and model.rises(node) else wall
        if above >= 0:
            add(above, node, 1)
        edges = 0
        for n, cell in enumerate(read[node]):
            at = writers.get(cell, -1)
            if at >= 0:
                cycles = late[at]
                succs[at].append((node, cycles if cycles >= 0 else model.distance(at, results[cell], node, n)))
                edges += 1
            if cell in readers:
                readers[cell].append(node)
            else:
                readers[cell] = [node]
        for n, cell in enumerate(written[node]):
            at = writers.get(cell, -1)
            if at >= 0:
                succs[at].append((node, after[at]))
                edges += 1
            if cell in readers:
                for reader in readers.pop(cell):
                    if reader != node:
                        succs[reader].append((node, until[reader]))
                        edges += 1
            writers[cell] = node
            results[cell] = n
            if coalesced:
                for reader in readers.get(coalesced.get((node, cell), -1), ()):
                    if reader != node:
                        succs[reader].append((node, 1))
                        edges += 1
        graph.waits[node] += edges
        if coming:
            for cell in read[node]:
                if cell in coming and (cell not in writers or writers[cell] == node):
                    graph.begin[node] = max(graph.begin[node], coming[cell])
        if model.is_wall(node):
            earlier = [*loose, *range(free, node)]
            loose = model.sinks(node, earlier)
            may = set(loose)
            for n in earlier:
                if n not in may:
                    add(n, node, 1)
            wall = node
            firm = firm if model.is_passed(node) else node
            free = node + 1
            memory = Memory(graph)
            convergent = -1
            exchanges = []
            continue
        if inst.op in CONVERGENT:
            if convergent >= 0:
                add(convergent, node, 1)
            if inst.op in _EXCHANGING:
                exchanges.append(node)
            else:
                for n in exchanges:
                    add(n, node, 1)
                convergent = node
                exchanges = []
        if inst.op in _COMPUTES and inst.attrs is None:
            continue
        memory_edges(memory, node, inst, writers, model.first_cell)
    return graph


def memory_edges(
    memory: Memory, node: int, inst: Inst, writers: dict[int, int], first_cell: Callable[[Reg], int]
) -> None:
    """Add the edges of a memory access or fence."""
    op = inst.op
    if fences(inst):
        memory.fence(node)
        return
    space = _READ.get(op)
    if space is not None:
        if op == "LDG" and any(m.startswith("CONSTANT") for m in inst.mods):
            return  # read-only data: no store of this kernel may write it
        memory.load(node, space, place_at(inst, node, writers, first_cell))
    elif op in _WRITE:
        memory.store(node, _WRITE[op], place_at(inst, node, writers, first_cell))
    elif op in _BOTH:
        memory.store(node, _BOTH[op], None)
        memory.order(node)
        return
    elif op == "LDGSTS":
        memory.load(node, "global", None)
        memory.store(node, "shared", None)
        return
    elif op not in _NO_MEMORY and any(type(o) is Mem for o in (*inst.dsts, *inst.srcs)):
        memory.fence(node)
        return
    else:
        return
    if ordered(inst):
        memory.order(node)


_NO_MEMORY: Final = facts.reading("const")


def place_at(inst: Inst, node: int, writers: dict[int, int], first_cell: Callable[[Reg], int]) -> Place | None:
    """The identity of the base (which values of which registers, which symbol) and the range of bytes from there.
    ``writers`` (cell -> node) holds the state after ``node``: an access that overwrites its own base has no place."""
    where = next((o for o in (*inst.dsts, *inst.srcs) if type(o) is Mem), None)
    if where is None:
        return None
    base: list[object] = [where.sym]
    for reg in (where.base, where.ubase):
        if reg is None or reg.num == ZERO:
            base.append(None)
            continue
        first = first_cell(reg)
        made = tuple(writers.get(first + part, -1) for part in range(reg.width))
        if node in made:
            return None
        base.append((first, reg.width, reg.mod, made))
    size = 4
    for m in inst.mods:
        size = _SIZES.get(m, size)
    if inst.op in ("LDSM", "STSM"):
        return None
    return (tuple(base), where.offset, where.offset + size)
