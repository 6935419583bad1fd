"""The executors that a co-simulation compares: the PTX interpreter, and the simulator with a cubin; and which
instruction last stored a byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.isa import facts
from ir_format.ptx import PtxInst, PtxUnit
from ir_format.record import NamedTuple
from stages.check.launches import Launch
from stages.interpret.fpu import bound_of
from stages.interpret.launch import InterpreterError, Module

Arr = NDArray[Any]
STEP_LIMIT: Final = 120_000
SIM_LIMIT: Final = 4_000_000


@dataclass(slots=True)
class Outcome:
    """Memory after a run (buffers by argument, module variables by name), or why there is none; whether the manual
    leaves payloads of NaNs open; how many steps the interpreter took."""

    buffers: dict[int, Arr] = field(default_factory=dict)
    variables: dict[str, Arr] = field(default_factory=dict)
    error: str = ""
    kind: str = ""
    open_nans: bool = False
    steps: int = 0
    writers: dict[int, Arr] = field(default_factory=dict)
    hazards: list[str] = field(default_factory=list)  # of the strict machine


def interpret(
    module: Module,
    launch: Launch,
    *,
    seed: int = 0,
    shuffled: int = 0,
    track: bool = False,
    other_nans: int = 0,
    errors: int = 0,
    limit: int = STEP_LIMIT,
) -> Outcome:
    """Run the PTX."""
    module.reset()
    for name, data in launch.constants.items():
        module.set_global(name, data)
    args = launch.values()
    try:
        result = module.launch(
            launch.entry,
            launch.grid,
            launch.block,
            args,
            shared=launch.shared,
            seed=seed,
            shuffled=shuffled,
            limit=limit,
            track=track,
            other_nans=other_nans,
            errors=errors,
        )
    except InterpreterError as error:
        return Outcome(error=str(error), kind=error.kind, steps=limit if error.kind == "limit" else 0)
    variables = {v.name: module.get_global(v.name) for v in module.module.variables if v.space == "global"}
    out = Outcome(launch.arrays(args), variables, open_nans=result.open_nans, steps=result.steps)
    for k, writer in zip(launch.buffers, result.writers, strict=False):
        if writer is not None:
            out.writers[k] = writer
    return out


def prepare(device: Any, launch: Launch) -> list[Any]:
    """Set a device's variables as a launch wants them; returns the arguments."""
    device.reset()
    for name, data in launch.constants.items():
        if name in device.image.variables:
            device.set_global(name, data)
    return launch.values()


def launched(device: Any, launch: Launch, args: list[Any], **how: Any) -> Any:
    """The result of :meth:`stages.simulate.Device.launch` for a launch; ``how``: its further arguments. Raises
    SimError."""
    return device.launch(launch.entry, launch.grid, launch.block, args, shared=launch.shared, names=launch.names, **how)


def simulate(device: Any, launch: Launch, *, seed: int = 0, limit: int | None = None, strict: bool = False) -> Outcome:
    """Run a cubin; ``limit``: most warp instructions (`SIM_LIMIT` if None); ``strict``: in the machine that
    honours the control words."""
    from stages.simulate import SimError

    args = prepare(device, launch)
    try:
        stats = launched(device, launch, args, seed=seed, limit=limit or SIM_LIMIT, strict=strict)
    except SimError as error:
        return Outcome(error=str(error), kind="simulator")
    variables = {name: device.get_global(name) for name, var in device.image.variables.items() if var.space == "global"}
    return Outcome(launch.arrays(args), variables, hazards=list(stats.hazards))


@contextmanager
def watching(log: dict[int, int], slots: dict[str, Any]) -> Iterator[None]:
    """While active, every instruction of a launch that changes global memory is recorded: `log` maps a byte offset of
    the heap to the number of the last instruction that changed it."""
    import stages.simulate.device as module

    home: Any = module
    changing = facts.writing("global", "generic", "cluster")

    plain: Any = home.Compiled

    class Watching(plain):  # type: ignore[misc]
        """Compiles global stores and atomics so that they record what they changed."""

        def compile(self, index: int) -> Any:
            fn = super().compile(index)
            op = self.program.inst(index).op
            if op not in changing:
                return fn
            heap = self.context.memory.heap
            slots["heap"], slots["program"] = heap, self.program

            def run(v: Any, m: Any) -> None:
                before = heap.data.copy()
                fn(v, m)
                for at in np.flatnonzero(before != heap.data):
                    log[int(at)] = index

            self.fns[index] = run
            return run

    home.Compiled = Watching
    try:
        yield
    finally:
        home.Compiled = plain


def last_store(device: Any, launch: Launch, argument: int, byte: int) -> str:
    """The SASS instruction that last changed a byte of a buffer, in words. A store of the value that was already there
    shows only when the byte holds something else."""
    found = _last_store(device, launch, argument, byte)
    if found is None:
        other = launch.buffers[argument].copy()
        other[byte] ^= 0xFF
        found = _last_store(device, replace(launch, buffers={**launch.buffers, argument: other}), argument, byte)
    return found or "no store changed it"


def _last_store(device: Any, launch: Launch, argument: int, byte: int) -> str | None:
    """The last store to a byte; None if there was none."""
    stored = stores(device, launch)
    if stored is None:
        return "no store was executed"
    index = stored.last(argument, byte)
    return None if index is None else str(stored.program.place(index, launch.entry))


class Stores(NamedTuple):
    """The stores of a launch to global memory: for each address, the instruction that last wrote it."""

    launch: Launch
    log: dict[int, int]
    heap: Any
    program: Any

    def last(self, argument: int, byte: int) -> int | None:
        """The instruction that last stored to a byte of a buffer; None if none did."""
        from stages.simulate.image import GLOBAL_BASE

        slot = 1 + list(self.launch.buffers).index(argument)
        return self.log.get(self.heap.starts[slot] - GLOBAL_BASE + byte)


def stores(device: Any, launch: Launch) -> Stores | None:
    """Run a launch and record its stores; None if nothing was stored at all."""
    log: dict[int, int] = {}
    slots: dict[str, Any] = {}
    with watching(log, slots):
        simulate(device, launch)
    heap = slots.get("heap")
    return None if heap is None else Stores(launch, log, heap, slots["program"])


def approximates(unit: PtxUnit) -> bool:
    """Whether any result depends on an approximation, or on the order of a matrix product's sums, which hardware and
    interpreter may round differently."""
    return any(
        isinstance(i, PtxInst)
        and (bound_of(i) is not None or (i.op in ("mma", "wmma") and i.types and i.types[0] in ("f16", "f32")))
        for f in unit.functions
        for i in f.body
    )
