"""The Python interface: a device with one loaded module.

>>> dev = Device(open("vadd.cubin", "rb").read())
>>> c = np.zeros(100, np.float32)
>>> dev.launch("vadd", 4, 32, [a, b, c, np.int32(100)])
"""

from __future__ import annotations

import gc
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stages.simulate.build import Context
from stages.simulate.elfread import ImageError
from stages.simulate.image import Image, Kernel, load_image
from stages.simulate.launch import MAX_THREADS, Dim3, Launch, bank0
from stages.simulate.machine import Fault, Limits, Machine, SimError
from stages.simulate.memory import Heap, Memory, Window
from stages.simulate.orders import Order
from stages.simulate.program import Compiled, Decoder, Program, isa_decoder
from stages.simulate.races import Race, Races, WatchedHeap, WatchedWindow
from stages.simulate.state import Lanes
from stages.simulate.stubs import Stubs

Arr = NDArray[Any]
#: (argument, offset of an address in it) and the array at that address.
Buffers: TypeAlias = list[tuple[tuple[int, int], Arr]]
#: A buffer, a scalar, or a record: its bytes and the buffers whose addresses go at some offsets.
Arg: TypeAlias = "Arr | np.generic | int | float | bytes | tuple[bytes, dict[int, Arr]]"
DEFAULT_LIMIT: Final = 400_000_000
DEFAULT_STACK: Final = 1024
MAX_SHARED: Final = 233_472
MAX_BLOCKS: Final = 1 << 26


@dataclass(slots=True)
class Stats:
    """What a launch did. ``instructions``: executed warp instructions; ``output``: text of device-side printf."""

    instructions: int = 0
    seconds: float = 0.0
    blocks: int = 0
    output: str = ""
    cycles: dict[str, object] = field(default_factory=dict)
    hazards: list[str] = field(default_factory=list)  # strict mode: reads of values that had not been written yet
    races: list[Race] = field(default_factory=list)  # if asked for: accesses that nothing orders
    advanced: int = 0  # with ``progress``: how often a warp was blocked and threads were released from a BSYNC

    @property
    def rate(self) -> float:
        """Warp instructions a second."""
        return self.instructions / self.seconds if self.seconds else 0.0


def dim3(value: int | Sequence[int]) -> Dim3:
    """Three extents from one number or up to three."""
    parts = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not 1 <= len(parts) <= 3 or any(int(p) < 1 for p in parts):
        raise SimError(f"bad extent {value!r}")
    full = (*(int(p) for p in parts), 1, 1)
    return full[0], full[1], full[2]


class Device:
    """A module loaded into a simulated device. Global variables live as long as the device, buffers as long as a
    launch."""

    def __init__(self, cubin: bytes, decoder: Decoder | None = None, progress: bool = False) -> None:
        """``progress`` applies to all launches. Raises :class:`ImageError` for a file that is not a usable cubin."""
        self.progress = progress
        self.image: Image = load_image(bytes(cubin))
        self.sm = self.image.target.sm
        try:
            self.program = Program(self.image, decoder or isa_decoder(self.sm))
        except ValueError as e:
            raise ImageError(str(e)) from e
        self.globals: Arr
        self.constants: Arr
        self.reset()

    def reset(self) -> None:
        """Give every module variable its initial value again."""
        self.globals = np.frombuffer(bytes(self.image.globals_init), np.uint8).copy()
        self.constants = np.frombuffer(bytes(self.image.bank3), np.uint8).copy()

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels."""
        return list(self.image.kernels)

    def _variable(self, name: str) -> Arr:
        var = self.image.variables.get(name)
        if var is None:
            raise SimError(
                f"no variable '{name}' in the module (it has: {', '.join(sorted(self.image.variables)) or 'none'})"
            )
        memory = self.globals if var.space == "global" else self.constants
        return memory[var.at : var.at + var.size]

    def get_global(self, name: str, dtype: Any = np.uint8) -> Arr:
        """A copy of a module variable's bytes as ``dtype``."""
        return self._variable(name).copy().view(dtype)

    def set_global(self, name: str, value: Arr) -> None:
        """Overwrite a module variable from its first byte."""
        memory = self._variable(name)
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        if len(data) > len(memory):
            raise SimError(f"variable '{name}' has {len(memory)} bytes, not {len(data)}")
        memory[: len(data)] = data

    def kernel(self, name: str) -> Kernel:
        """A kernel's record. Raises :class:`SimError`."""
        found = self.image.kernels.get(name)
        if found is None:
            raise SimError(f"no kernel '{name}' in the module (it has: {', '.join(sorted(self.image.kernels))})")
        return found

    def launch(
        self,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Arg] = (),
        shared: int = 0,
        strict: bool = False,
        seed: int = 0,
        limit: int = DEFAULT_LIMIT,
        stack: int = DEFAULT_STACK,
        cluster: int | Sequence[int] | None = None,
        names: Sequence[str] = (),
        cycles: bool = False,
        races: bool = False,
        order: str = "",
        progress: bool = False,
    ) -> Stats:
        """Run a kernel to its end. Arrays among ``args`` (and in records among them) are buffers: copied in, and back
        in place when they are writable.

        ``shared``: dynamic shared memory in bytes; ``limit``: most warp instructions; ``stack``: bytes of local memory
        per thread; ``names``: names of the arguments for messages; ``races``: look for accesses that nothing orders
        (:mod:`races`); ``order``: the order in which warps run, one of :data:`orders.ORDERS`; ``progress``: if nothing
        can run, threads that wait at a BSYNC continue (ptxas's code needs it). Raises :class:`SimError`.
        """
        began = time.perf_counter()
        entry = self.kernel(kernel)
        grid3, block3 = dim3(grid), dim3(block)
        cluster3 = dim3(cluster) if cluster is not None else entry.cluster or (1, 1, 1)
        self._check(entry, grid3, block3, cluster3, shared)
        if races and (strict or cycles):
            raise SimError("races are looked for in the plain machine, without strict or cycles")
        watcher = (
            Races(lambda pc: self.program.place(pc, kernel), lambda lane: launch.describe(lanes, lane))
            if races
            else None
        )
        labels = [names[i] if i < len(names) else f"argument {i}" for i in range(len(args))]
        buffers = [x for i, a in enumerate(args) for x in buffers_of(i, a)]
        stubs = Stubs(self.image)
        heap = self._filled_heap(labels, buffers, stubs, watcher)
        pointers = {place: heap.starts[slot] for slot, (place, _) in enumerate(buffers, 1)}
        params = self._params(entry, args, pointers)
        local = -(-max(entry.min_stack, stack) // 16) * 16
        shared_size = max(entry.shared, self.image.target.smem_base) + shared
        launch = Launch(self.image.target, entry, grid3, block3, cluster3, shared_size, stubs.table)
        lanes = Lanes(launch.resident * launch.warps, seed)
        shared_facts = (shared_size, launch.resident, "shared_at", seed + 1)
        memory = _memory(heap, shared_facts, (local, lanes.n, "local_at", seed + 2), watcher)
        banks = {
            0: bank0(self.image.target, entry, grid3, block3, params, local, shared, cluster3),
            2: entry.bank2, 3: self.constants.tobytes(), 4: bytes(self.image.bank4),
        }  # fmt: skip
        context = stubs.context = Context(lanes, entry, self.sm, banks, memory, launch, None, watcher)
        code = Compiled(self.program, context)
        context.code = code
        stats = Stats(blocks=launch.blocks)
        with _running(stats, stubs, code, launch, lanes):
            self._run(
                entry,
                launch,
                lanes,
                memory,
                code,
                Limits(limit),
                seed,
                strict,
                cycles,
                stats,
                order,
                progress or self.progress,
            )
        self._copy_back(heap, buffers)
        stats.seconds = time.perf_counter() - began
        return stats

    def _filled_heap(self, labels: list[str], buffers: Buffers, stubs: Stubs, watcher: Races | None) -> Heap:
        """Global memory that holds the module's variables and the buffers of a launch."""
        heap = _heap(
            [
                ("module variables", len(self.globals)),
                *((labels[i], a.nbytes) for (i, _), a in buffers),
                *stubs.arenas(),
            ],
            watcher,
        )
        heap.slot(0)[:] = self.globals
        for slot, (_, a) in enumerate(buffers, 1):
            heap.slot(slot)[:] = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
        return heap

    def _copy_back(self, heap: Heap, buffers: Buffers) -> None:
        """Copy global memory after a launch back into the module's variables and the writable arrays."""
        self.globals[:] = heap.slot(0)
        for slot, (_, a) in enumerate(buffers, 1):
            if a.flags.writeable:
                a[...] = heap.slot(slot).view(a.dtype).reshape(a.shape)

    def _run(
        self,
        entry: Kernel,
        launch: Launch,
        lanes: Lanes,
        memory: Memory,
        code: Compiled,
        limits: Limits,
        seed: int,
        strict: bool,
        cycles: bool,
        stats: Stats,
        order: str,
        progress: bool,
    ) -> None:
        start = self.program.index(entry.entry)
        profile = None
        for first in range(0, launch.blocks, launch.resident):
            exists = launch.start(lanes, first, memory.shared.stride, memory.local.stride)
            machine: Machine
            if strict or cycles:
                from stages.simulate.cycles import Profile
                from stages.simulate.strict import StrictMachine

                timed = StrictMachine(lanes, code, entry.name, limits, seed, typical=not strict)
                if cycles:
                    profile = timed.watch = profile or Profile()
                machine = timed
            else:
                machine = Machine(lanes, code, entry.name, limits, seed)
            machine.describe_lane = lambda lane: launch.describe(lanes, lane)
            machine.progress = progress
            machine.order = Order(order, seed, lanes.warps) if order else None
            machine.watcher = code.context.watcher
            if code.context.watcher is not None:
                code.context.watcher.begin(lanes.n)
            launch.machine = machine
            memory.shared.data[: memory.shared.stride * launch.resident].reshape(launch.resident, -1)[
                :, : self.image.target.smem_base
            ] = 0  # what the driver prepares
            launch.cluster_arrivals.clear()
            machine.start(exists, start)
            machine.executed = stats.instructions
            try:
                machine.run()
            finally:
                stats.instructions = machine.executed
                stats.advanced += machine.advanced
                if strict:
                    stats.hazards += [h for h in machine.hazard_lines() if h not in stats.hazards]
                machine.drop()
        if profile is not None:
            stats.cycles = profile.table(self.program)

    def _check(self, entry: Kernel, grid: Dim3, block: Dim3, cluster: Dim3, shared: int) -> None:
        threads = block[0] * block[1] * block[2]
        if threads > MAX_THREADS:
            raise SimError(f"{threads} threads in a block, at most {MAX_THREADS}")
        if grid[0] * grid[1] * grid[2] > MAX_BLOCKS:
            raise SimError("too many blocks")
        if entry.max_threads and threads > entry.max_threads:
            raise SimError(
                f"{threads} threads in a block, but kernel '{entry.name}' was compiled for at most {entry.max_threads}"
            )
        if entry.reqntid and block != entry.reqntid:
            raise SimError(f"kernel '{entry.name}' was compiled for blocks of {entry.reqntid}, not {block}")
        if any(g % c for g, c in zip(grid, cluster, strict=True)):
            raise SimError(f"grid {grid} is not a multiple of the cluster {cluster}")
        if shared < 0 or entry.shared + shared > MAX_SHARED:
            raise SimError(f"{entry.shared + shared} bytes of shared memory, at most {MAX_SHARED}")

    def _params(self, entry: Kernel, args: Sequence[Arg], pointers: dict[tuple[int, int], int]) -> bytes:
        if len(args) != len(entry.params):
            raise SimError(f"kernel '{entry.name}' takes {len(entry.params)} arguments, not {len(args)}")
        data = bytearray(max((p.offset + p.size for p in entry.params), default=0))
        for i, (param, arg) in enumerate(zip(entry.params, args, strict=True)):
            if isinstance(arg, tuple):
                record = bytearray(arg[0])
                for at in arg[1]:
                    record[at : at + 8] = struct.pack("<Q", pointers[i, at])
                value = bytes(record)
            else:
                value = (
                    struct.pack("<Q", pointers[i, 0]) if isinstance(arg, np.ndarray) else scalar_bytes(arg, param.size)
                )
            if len(value) != param.size:
                raise SimError(f"argument {i} of kernel '{entry.name}' has {param.size} bytes, {len(value)} given")
            data[param.offset : param.offset + param.size] = value
        return bytes(data)


@contextmanager
def _running(stats: Stats, stubs: Stubs, code: Compiled, launch: Launch, lanes: Lanes) -> Iterator[None]:
    """Run a launch in the body. Afterwards ``stats`` has its printed output and its races. A fault becomes a
    :class:`SimError`."""
    watcher = code.context.watcher
    collects = gc.isenabled()
    gc.disable()  # collections find no garbage while the closures are made, and take half the time of a small launch
    try:
        yield
    except Fault as fault:
        raise SimError(fault.message) from fault
    finally:
        stats.output = stubs.text()
        if watcher is not None:
            watcher.flush()
            stats.races = list(watcher.found.values())
        code.drop()  # breaks reference cycles, so that no collection is needed to free the code
        lanes.views.clear()
        launch.machine = None
        if collects:
            gc.enable()


def _heap(allocations: list[tuple[str, int]], watcher: Races | None) -> Heap:
    """Global memory. Raises :class:`SimError`."""
    try:
        return Heap(allocations) if watcher is None else WatchedHeap(allocations, watcher)
    except Fault as fault:
        raise SimError(fault.message) from fault


def _memory(
    heap: Heap, shared: tuple[int, int, str, int], local: tuple[int, int, str, int], watcher: Races | None
) -> Memory:
    """All memory of a launch; ``shared``, ``local``: size, count, view and seed of a window. Raises
    :class:`SimError`."""
    try:
        window = Window("shared", *shared) if watcher is None else WatchedWindow("shared", *shared, watcher)
        return Memory(heap, window, Window("local", *local))
    except Fault as fault:
        raise SimError(fault.message) from fault


def buffers_of(i: int, arg: object) -> Buffers:
    """The buffers of an argument: ((argument, offset of its address), array)."""
    if isinstance(arg, tuple):
        return [((i, at), a) for at, a in arg[1].items()]
    return [((i, 0), arg)] if isinstance(arg, np.ndarray) else []


def scalar_bytes(arg: object, size: int) -> bytes:
    """Little-endian bytes of a scalar argument; Python numbers take the parameter's size."""
    if isinstance(arg, (bytes, bytearray)):
        return bytes(arg)
    if isinstance(arg, np.generic):
        return bytes(arg.tobytes())
    if isinstance(arg, bool):
        arg = int(arg)
    if isinstance(arg, int):
        return (arg & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    if isinstance(arg, float):
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}.get(size, "<d"), arg)
    raise SimError(f"argument {arg!r} is neither a number, bytes nor an array")
