"""The dependence graph of a block: which instruction must stay behind which, and after how many cycles it can follow.

Registers of every file (guards, predicates, convergence barriers too), memory by space, and instructions that nothing may pass. Register distances come from
:mod:`ir_format.hazards`; a result behind a scoreboard counts its estimated latency, since only the order depends on it: safety is the business of
:mod:`stages.schedule.control`, which looks at the final order again.

The graph stays linear in the block: an access is compared with a bounded number of earlier ones, then it becomes a fence of its space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ir_format.flow import PHYSICAL_BASE
from ir_format.hazards import Access, Hazards
from ir_format.hazards.model import B0, file_of
from ir_format.model import ZERO, Inst, Mem, Name, Reg

#: Nothing moves over these. Time reads are here so that what a program measures is what stands between them.
WALLS: Final = frozenset(
    "CALL RET BSYNC BREAK WARPSYNC YIELD NANOSLEEP BPT KILL ENDCOLLECTIVE PREEXIT ACQBULK WARPGROUP USETMAXREG SETMAXREG FENCE B2R RTT LEPC EXIT BRA BRX BRXU JMP JMX JMXU".split()  # noqa: SIM905
)
#: Memory accesses do not move over these, other instructions do.
FENCES: Final = frozenset("BAR MEMBAR ERRBAR CGAERRBAR CCTL CCTLL CCTLT DEPBAR LDGDEPBAR UTMACMDFLUSH SYNCS ARRIVES REDUX MATCH".split())  # noqa: SIM905
#: Instructions in which the threads of a warp meet keep their order. Matrix products, their loads and stores do not: the threads of a block's warp are
#: together for all of them (ptxas moves them past one another too: measured).
MEETINGS: Final = frozenset("BSSY BAR SHFL VOTE VOTEU MATCH REDUX CREDUX ELECT".split())  # noqa: SIM905
_CLOCKS: Final = frozenset(("SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI", "SR_CLOCK"))
_STRONG: Final = frozenset(("STRONG", "MMIO", "STRONG.SM", "STRONG.GPU", "STRONG.SYS", "MMIO.GPU", "MMIO.SYS"))

_READ: Final = {"LDG": "global", "LD": "generic", "LDS": "shared", "LDSM": "shared", "LDL": "local"}
_WRITE: Final = {"STG": "global", "ST": "generic", "STS": "shared", "STSM": "shared", "STL": "local"}
_BOTH: Final = {"ATOMG": "global", "ATOM": "generic", "ATOMS": "shared", "RED": "generic", "REDG": "global", "REDS": "shared"}
_SIZES: Final = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_SPACES: Final = ("global", "shared", "local", "generic")
_WINDOW: Final = 24

Place = tuple[object, ...]


class Graph:
    """``succs[i]``: (later node, cycles); ``waits[i]``: number of edges into ``i``."""

    __slots__ = ("succs", "waits")

    def __init__(self, count: int) -> None:
        self.succs: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.waits = [0] * count

    def add(self, earlier: int, later: int, cycles: int) -> None:
        """``later`` stays behind ``earlier``, at least ``cycles`` after it as far as the estimate goes."""
        self.succs[earlier].append((later, cycles))
        self.waits[later] += 1


def is_wall(inst: Inst) -> bool:
    """Whether nothing may move over the instruction."""
    if inst.op in WALLS:
        return True
    return inst.op in ("CS2R", "S2R", "S2UR") and any(type(o) is Name and o.name in _CLOCKS for o in inst.srcs)


class _Space:
    """Accesses of one memory space since the last fence: (node, place), newest last. ``floor``: node that later accesses stay behind."""

    __slots__ = ("floor", "loads", "stores")

    def __init__(self) -> None:
        self.floor = -1
        self.loads: list[tuple[int, Place | None]] = []
        self.stores: list[tuple[int, Place | None]] = []


class Memory:
    """Order of memory accesses. A place is (base identity, first byte, end) or None when it may be anywhere in its space."""

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
        """Every access stays on its side of ``node``."""
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


def build_graph(insts: list[Inst], accesses: list[Access], hazards: Hazards) -> Graph:
    """The graph of a block's instructions in program order."""
    count = len(insts)
    graph = Graph(count)
    add = graph.add
    memory = Memory(graph)
    writers: dict[int, int] = {}
    names: dict[int, str] = {}
    readers: dict[int, list[int]] = {}
    wall = -1
    meeting = -1
    free = 0  # first node behind the last wall

    def place_of(inst: Inst, node: int) -> Place | None:
        return place_at(inst, node, writers, _physical)

    for node in range(count):
        inst = insts[node]
        a = accesses[node]
        if wall >= 0:
            add(wall, node, 1)
        for cell, role, _ in a.reads:
            at = writers.get(cell, -1)
            if at >= 0:
                before = accesses[at]
                cycles = before.latency if before.board_w else hazards.cell("raw", file_of(cell), names[cell], role).cycles
                add(at, node, cycles)
            readers.setdefault(cell, []).append(node)
        for cell, name, _ in a.writes:
            at = writers.get(cell, -1)
            if at >= 0:
                add(at, node, accesses[at].latency if accesses[at].board_w else 1)
            for reader in readers.get(cell, ()):
                if reader != node:
                    add(reader, node, 12 if accesses[reader].board_r else 1)
            readers[cell] = []
            writers[cell] = node
            names[cell] = name
        if is_wall(inst) or (inst.op != "BSSY" and (a.write_mask | a.read_mask) >> B0):
            for earlier in range(free, node):
                add(earlier, node, 1)
            wall = node
            free = node + 1
            memory = Memory(graph)
            meeting = -1
            continue
        if inst.op in MEETINGS:
            if meeting >= 0:
                add(meeting, node, 1)
            meeting = node
        memory_edges(memory, node, inst, place_of)
    return graph


def memory_edges(memory: Memory, node: int, inst: Inst, place_of: Callable[[Inst, int], Place | None]) -> None:
    """The edges of a memory access or fence; ``place_of`` is asked only for accesses whose place matters."""
    op = inst.op
    if op in FENCES:
        memory.fence(node)
        return
    space = _READ.get(op)
    if space is not None:
        if op == "LDG" and any(m.startswith("CONSTANT") for m in inst.mods):
            return  # read-only data: no store of this kernel may touch it
        memory.load(node, space, place_of(inst, node))
    elif op in _WRITE:
        memory.store(node, _WRITE[op], place_of(inst, node))
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
    if not _STRONG.isdisjoint(inst.mods):
        memory.order(node)


_NO_MEMORY: Final = frozenset(("LDC", "LDCU", "ULDC"))


def _physical(reg: Reg) -> int:
    return PHYSICAL_BASE[reg.file] + reg.num


def place_at(inst: Inst, node: int, writers: dict[int, int], first_cell: Callable[[Reg], int]) -> Place | None:
    """Identity of the base (which value of which registers, which symbol) and the bytes touched behind it. ``writers`` (cell -> node) is as of after
    ``node``: an access that overwrites its own base has no place."""
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


