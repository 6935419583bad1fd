"""Threads of a launch, run together: one array element per thread; groups of threads at the same instruction execute
one step at a time.

Of all groups that can run, the one deepest in calls, and among these the lowest in the code, runs first until it meets
another group, so threads reconverge. A group that runs long while others wait yields, so that threads can wait for each
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.interpret.code import Action, Code, FunctionCode, Step
from stages.interpret.floats import FORMATS, Format, decode, is_nan, narrow
from stages.interpret.fpu import Bound
from stages.interpret.memory import Filler, Heap, MemoryFault, Window
from stages.interpret.rows import U64, Unsupported
from stages.interpret.undocumented import Outside

Arr = NDArray[Any]
RUN, WAIT, BARRIER, DONE = 0, 1, 2, 3
#: Steps of a group after which a waiting group gets its turn.
PATIENCE: Final = 1000
#: The same after the group has tested a barrier object in vain: enough to reach the test again.
WAITING: Final = 8
MAX_DEPTH: Final = 200
LEVEL: Final = 1 << 32
#: Negative quiet NaNs that differ from the canonical one in every part.
OTHER_NANS: Final[dict[Format, Any]] = {
    FORMATS[name]: U64(bits)
    for name, bits in (("f64", 0xFFFB_5A5A_4F1E_2D3C), ("f32", 0xFFDA_5A5A), ("f16", 0xFE5A), ("bf16", 0xFFDA))
}


class InterpreterError(Exception):
    """The program did something forbidden, or exceeded a limit. `line` is the PTX line, 0 if unknown; `kind` is
    one of address, deadlock, limit, trap, unsupported, undefined, outside (a form that is not in the manual)."""

    def __init__(self, kind: str, message: str, line: int = 0, opcode: str = "") -> None:
        where = f" (line {line}: {opcode})" if line else ""
        super().__init__(f"{message}{where}")
        self.kind = kind
        self.message = message
        self.line = line


@dataclass(slots=True)
class Frame:
    """Registers of one function at one call depth, for all threads, with their return addresses."""

    regs: list[Arr]
    cc: Arr
    base: Arr
    back: Arr  # step to return to
    site: Arr  # the calling step


@dataclass(slots=True)
class Geometry:
    """Extents of a launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(slots=True)
class Machine:
    """The state of the blocks that run together."""

    code: Code
    geometry: Geometry
    heap: Heap
    shared: Window
    local: Window
    const: Window
    kparam: Window
    dynamic: int
    dynamic_size: int
    first_block: int
    blocks: int
    limit: int
    action: Callable[[Code, Step, int], Action]  # from an instruction to what it does
    release: Callable[[Machine], bool]  # releases threads whose partners at barriers have ended
    track: bool = False
    n: int = 0
    warps: int = 0
    act: Any = None
    idx: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    all: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    key: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    rank: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    status: Arr = field(default_factory=lambda: np.zeros(0, np.int8))
    wanted: Arr = field(default_factory=lambda: np.zeros(0, np.uint64))
    bar_id: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    bar_count: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    bar_value: Arr = field(default_factory=lambda: np.zeros(0, np.uint64))
    arrived: dict[tuple[int, int], int] = field(default_factory=dict)
    barriers: dict[int, Any] = field(default_factory=dict)  # mbarrier objects by their address in shared memory
    tensor: dict[int, Any] = field(default_factory=dict)  # tensor memory by block
    last: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    sp: Arr = field(default_factory=lambda: np.zeros(0, np.uint64))
    base: Arr = field(default_factory=lambda: np.zeros(0, np.uint64))
    tid: tuple[Arr, Arr, Arr] = ()  # type: ignore[assignment]
    ctaid: tuple[Arr, Arr, Arr] = ()  # type: ignore[assignment]
    block_of: Arr = field(default_factory=lambda: np.zeros(0, np.int64))
    frames: dict[tuple[int, int], Frame] = field(default_factory=dict)
    frame: Any = None
    regs: list[Arr] = field(default_factory=list)
    junk: Arr = field(default_factory=lambda: np.zeros(0, np.uint64))
    junk_bits: Arr = field(default_factory=lambda: np.zeros(0, np.uint64))
    depth: int = 0
    pc: int = 0
    executed: int = 0
    clock: int = 0
    pace: int = 1  # clock ticks per step, and the clock's first value
    started: int = 0
    vain: bool = False  # a test of a barrier object failed: other groups should run
    tired: bool = False  # the last group used up its patience
    other_nans: int = 0  # NaNs that the manual leaves open get another payload; 1: negative, 2: positive
    open_nans: bool = False  # there was such a NaN
    beyond: Any = None  # angles of sines in progress for which the manual gives no bound
    errors: Any = None  # a generator: approximations err by as much as the manual allows, in directions drawn from it

    def prepare(self, shuffled: int, filler: Filler) -> None:
        """Lay out the threads. `shuffled`, if not 0, runs warps one by one instead of together, in an order drawn from
        it: 1 from the first to the last, 2 from the last to the first, so that of any two each has been first."""
        g = self.geometry
        per = -(-g.threads // 32) * 32
        self.warps = per // 32
        n = self.n = per * self.blocks
        flat = np.arange(n, dtype=np.int64)
        self.all = flat
        t = flat % per
        self.block_of = flat // per
        bx, by, _ = g.block
        self.tid = ((t % bx).astype(U64), (t // bx % by).astype(U64), (t // (bx * by)).astype(U64))
        block = self.block_of + self.first_block
        gx, gy, _ = g.grid
        self.ctaid = ((block % gx).astype(U64), (block // gx % gy).astype(U64), (block // (gx * gy)).astype(U64))
        self.status = np.where(t < g.threads, RUN, DONE).astype(np.int8)
        self.key = np.full(n, self._key(0, 0), np.int64)
        self.last = np.zeros(n, np.int64)
        self.rank = np.zeros(n, np.int64)
        if shuffled:
            order = np.arange(n // 32)[:: 1 if shuffled == 1 else -1]
            if shuffled > 2:
                order = np.random.default_rng([shuffled, 19]).permutation(n // 32)
            self.rank = order.astype(np.int64).repeat(32) << 48
        self.wanted = np.zeros(n, U64)
        self.bar_id = np.full(n, -1, np.int64)
        self.bar_count = np.zeros(n, np.int64)
        self.bar_value = np.zeros(n, U64)
        self.junk = filler.bytes(8 * n).view(np.uint64)
        self.junk_bits = self.junk & U64(1)
        self.sp = np.full(n, self.code.functions[0].frame, U64)
        self.frames[0, 0] = self.new_frame(self.code.functions[0])

    def new_frame(self, f: FunctionCode) -> Frame:
        """A frame with undefined registers."""
        regs = [self.junk_bits if w == 1 else self.junk if w <= 64 else np.zeros((self.n, 2), U64) for w in f.widths]
        zero = np.zeros(self.n, np.int64)
        return Frame(regs, np.zeros(self.n, U64), np.zeros(self.n, U64), zero.copy(), zero)

    @staticmethod
    def _key(depth: int, pc: int) -> int:
        return (MAX_DEPTH - depth) * LEVEL + pc

    # ------------------------------------------------------------------ running

    def run(self) -> None:
        """Run all threads to their end. Raises InterpreterError."""
        with np.errstate(all="ignore"):
            while True:
                running = self.status == RUN
                if not running.any():
                    if (self.status == DONE).all():
                        return
                    if not self._release():
                        self._deadlock()
                    continue
                order = self.key + self.rank
                if self.tired:
                    oldest = int(np.where(running, self.last, 1 << 62).argmin())
                    chosen = int(order[oldest])
                else:
                    chosen = int(order[running].min())
                threads = np.flatnonzero(running & (order == chosen))
                k = int(self.key[threads[0]])
                later = order[running & (order > chosen)]
                others = len(later) + int((running & (order < chosen)).sum())
                stop = int(later.min()) - int(self.rank[threads[0]]) if len(later) else 1 << 62
                self._group(threads, MAX_DEPTH - (k // LEVEL), k % LEVEL, stop, others > 0)

    def _group(self, threads: Arr, depth: int, pc: int, stop: int, others: bool) -> None:
        steps = self.code.steps
        level = (MAX_DEPTH - depth) * LEVEL
        self.depth = depth
        function = steps[pc].function
        self.frame = self.frames[depth, function]
        self.regs = self.frame.regs
        self.base = self.frame.base
        idx = threads
        whole: Any = slice(None) if len(threads) == self.n else threads
        self.idx, self.act = idx, whole
        budget = PATIENCE if others else 1 << 60
        self.tired = False
        self.last[threads] = self.executed + 1
        while True:
            step = steps[pc]
            self.executed += 1
            budget -= 1
            if step.run is None:
                self._compile(pc)
            self.pc = pc
            try:
                if step.guard is not None:
                    register, negated = step.guard
                    taken = (self.regs[register][self.act] != 0) ^ negated
                    count = int(np.count_nonzero(taken))
                    if count != len(idx):
                        if count:
                            if step.control:
                                off = idx[~taken]
                                self.key[off] = level + pc + 1
                                stop = min(stop, level + pc + 1)
                                budget = min(budget, PATIENCE)  # another group waits now
                                idx = idx[taken]
                                self.idx = self.act = whole = idx
                            else:
                                self.idx = self.act = idx[taken]
                                step.run(self)  # type: ignore[misc]
                                self.idx, self.act = idx, whole
                                count = 0
                        if not count:
                            pc += 1
                            if level + pc >= stop or budget <= 0:
                                self.key[idx] = level + pc
                                self.tired = budget <= 0
                                return
                            continue
                at = step.run(self)  # type: ignore[misc]
            except MemoryFault as fault:
                raise InterpreterError(
                    "address",
                    f"{fault.message} by {self.name_of(int(self.idx[min(fault.thread, len(self.idx) - 1)]))}",
                    step.inst.line,
                    step.inst.opcode,
                ) from fault
            except Unsupported as missing:
                raise InterpreterError(
                    "unsupported", f"not interpreted: {missing}", step.inst.line, step.inst.opcode
                ) from missing
            if self.vain and others:
                budget, self.vain = min(budget, WAITING), False
            if at is None:
                pc += 1
            elif at < 0:
                if self.executed > self.limit:
                    raise InterpreterError("limit", f"more than {self.limit} steps", step.inst.line, step.inst.opcode)
                return
            else:
                pc = at
            if level + pc >= stop or budget <= 0 or self.executed > self.limit:
                self.key[idx] = level + pc
                self.tired = budget <= 0
                if self.executed > self.limit:
                    raise InterpreterError("limit", f"more than {self.limit} steps", step.inst.line, step.inst.opcode)
                return

    def _compile(self, pc: int) -> None:
        step = self.code.steps[pc]
        try:
            step.run = self.action(self.code, step, pc)
        except Outside as missing:
            raise InterpreterError("outside", str(missing), step.inst.line) from missing
        except Unsupported as missing:
            raise InterpreterError(
                "unsupported", f"not interpreted: {missing}", step.inst.line, step.inst.opcode
            ) from missing

    def name_of(self, thread: int) -> str:
        """A thread in words."""
        t = ",".join(str(int(c[thread])) for c in self.tid)
        b = ",".join(str(int(c[thread])) for c in self.ctaid)
        return f"thread ({t}) of block ({b})"

    def _deadlock(self) -> None:
        stuck = int(np.flatnonzero(self.status != DONE)[0])
        inst = self.code.steps[int(self.key[stuck]) % LEVEL].inst
        raise InterpreterError(
            "deadlock", f"no thread can continue; {self.name_of(stuck)} waits", inst.line, inst.opcode
        )

    # ------------------------------------------------------------------ waiting

    def _release(self) -> bool:
        """Release waiting threads whose partners have ended."""
        return self.release(self)

    def write_wide(self, i: int, v: Any) -> None:
        """Write a 128-bit register."""
        self.regs[i][self.act] = v

    def nan(self, v: Arr, f: Format) -> Arr:
        """Results in a format whose NaNs the manual leaves open: recorded, and given other bits if `other_nans` is
        set."""
        found = is_nan(v, f)
        if not found.any():
            return v
        self.open_nans = True
        if not self.other_nans:
            return v
        other = OTHER_NANS[f]
        return np.where(found, other ^ U64(f.sign) if self.other_nans == 2 else other, v)

    def approximate(self, v: Arr, bound: Bound, f: Format) -> Arr:
        """Results of an approximation: if :attr:`errors` is set, others that the manual allows as well."""
        if self.errors is None:
            return v
        x = decode(v, f)
        fine = np.isfinite(x) & (x != 0)
        step = np.ldexp(1.0, np.maximum(np.frexp(np.where(fine, x, 1.0))[1] - 1, f.emin) - (f.prec - 1))
        error = np.maximum(np.maximum(bound.rel * np.abs(x), bound.abs), bound.ulp * step)
        by = self.errors.uniform(-1.0, 1.0, x.shape)
        other = x + by * error
        if self.beyond is not None:
            other, self.beyond = np.where(self.beyond, by, other), None
        return np.where(fine, narrow(other, f), v)

    def far(self, v: Arr) -> Arr:
        """Record angles of a sine or cosine: beyond 100 pi the manual allows any result."""
        if self.errors is not None:
            self.beyond = np.abs(decode(v, FORMATS["f32"])) > 100 * np.pi
        return v

    def special(self, name: str) -> Arr:
        """A special register of the active threads."""
        from stages.interpret.special import special

        return special(self, name)
