"""One program through the chain, executed, against the PTX interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.model import AttrValue
from orchestrator.api import ChainError, compile_ptx
from stages.interpret.launch import InterpreterError, Module, ParseError
from stages.plumbing.runner import Flags
from stages.simulate import Device, ImageError, SimError
from tests import oracle

Arr = NDArray[Any]
#: Limits of interpreter steps and simulator warp instructions: random programs need a few thousand.
STEPS: Final = 60_000
WORDS: Final = 400_000
_WORD: Final = 4  # bytes


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is run. ``arguments`` creates them anew from a seed."""

    grid: int
    block: int
    arguments: Callable[[int], list[Any]]
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Way:
    """A configuration of the chain."""

    arch: str
    level: int = 3
    registers: int = 0
    skip: tuple[str, ...] = ()
    limit: int | None = None
    allocator: str = "greedy"
    scheduler: str = "list"
    strict: bool = False
    by: str = "ours"

    def __str__(self) -> str:
        text = f"{self.arch} -O{self.level}" if self.by == "ours" else f"{self.by}, {self.arch} -O{self.level}"
        if self.registers:
            text += f" -maxrregcount {self.registers}"
        if self.strict:
            text += " strict"
        return text

    def compile(self, text: str) -> bytes:
        """A cubin. Raises ChainError."""
        if self.by != "ours":
            return self._theirs(text)
        options: dict[str, AttrValue] = {"opt-level": self.level, "fmad": 0}
        if self.registers:
            options["maxrregcount"] = self.registers
        flags = {
            "optimize": Flags(quiet=True, skip=self.skip, limit=self.limit),
            "regalloc": Flags(quiet=True, extra={"allocator": self.allocator}),
            "schedule": Flags(quiet=True, extra={"scheduler": self.scheduler}),
        }
        return compile_ptx(text, self.arch, options, flags=flags)

    def _theirs(self, text: str) -> bytes:
        options = ["-fmad=false", f"-O{self.level}", *([f"-maxrregcount={self.registers}"] if self.registers else [])]
        made = oracle.compile_ptx(text, self.arch[3:], *options, tool=self.by)
        if isinstance(made, oracle.ToolError):
            raise ChainError(str(made))
        return made.read_bytes()


@dataclass(slots=True)
class Run:
    """Buffers after a launch, or why there are none."""

    buffers: list[Arr] = field(default_factory=list)
    error: str = ""
    kind: str = ""
    instructions: int = 0
    open_nans: bool = False


class Program:
    """A PTX module and what its kernels compute by the manual (computed once)."""

    def __init__(self, text: str, launch: Launch, arch: str = "sm_90") -> None:
        """Raises ParseError."""
        self.text = text
        self.launch = launch
        self.module = Module(text, arch)
        self.known: dict[tuple[str, int, int, int], Run] = {}

    @property
    def kernels(self) -> list[str]:
        return [n for n, code in self.module.codes.items() if code.functions[0].function.entry]

    def expected(self, kernel: str, data: int = 0, seed: int = 0, nans: int = 0) -> Run:
        """The interpreter's result; ``seed`` draws undefined values and the order of warps, ``nans`` the sign and the
        payload of NaNs that the manual leaves open."""
        key = (kernel, data, seed, nans)
        if key not in self.known:
            args = self.launch.arguments(self.launch.seed + data)
            self.module.reset()
            try:
                result = self.module.launch(
                    kernel,
                    (self.launch.grid, 1, 1),
                    (self.launch.block, 1, 1),
                    args,
                    seed=seed,
                    shuffled=seed > 0,
                    limit=STEPS,
                    other_nans=nans,
                )
                buffers = [a for a in args if isinstance(a, np.ndarray)]
                self.known[key] = Run(buffers, instructions=result.steps, open_nans=result.open_nans)
            except InterpreterError as e:
                self.known[key] = Run(error=str(e), kind=e.kind)
        return self.known[key]

    def open(self, kernel: str, data: int = 0) -> list[Arr]:
        """Which bytes of the buffers are in words that depend on the sign or payload of a NaN that the manual leaves
        open: of NaNs of double precision, and of neg and abs in every format."""
        good = self.expected(kernel, data)
        found = [np.zeros(a.nbytes, np.bool_) for a in good.buffers]
        for nans in (1, 2) if good.open_nans else ():
            other = self.expected(kernel, data, nans=nans)
            for which, a, b in zip(found, good.buffers, other.buffers, strict=False):
                at = np.flatnonzero(a.view(np.uint8) != b.view(np.uint8)) // _WORD
                for k in range(_WORD):
                    which[np.minimum(at * _WORD + k, len(which) - 1)] = True
        return found

    def defined(self, kernel: str, data: int = 0) -> str:
        """'' if the kernel shows nothing undefined and no race, else what it shows."""
        first = self.expected(kernel, data)
        if first.error:
            return f"interpreter: {first.error}"
        for seed in (1, 2, 3):
            other = self.expected(kernel, data, seed)
            if other.error:
                return f"interpreter: {other.error}"
            if difference(first, other):
                return f"undefined: {difference(first, other)}"
        return ""


def simulate(cubin: bytes | Device, kernel: str, launch: Launch, data: int = 0, strict: bool = False) -> Run:
    """A kernel of a cubin in the simulator."""
    args = launch.arguments(launch.seed + data)
    try:
        device = Device(cubin) if isinstance(cubin, bytes) else cubin
        device.reset()
        stats = device.launch(
            kernel, launch.grid, launch.block, args, limit=WORDS, stack=8192, strict=strict, seed=data
        )
    except (SimError, ImageError) as e:
        return Run(error=str(e))
    return Run([a for a in args if isinstance(a, np.ndarray)], instructions=stats.instructions)


def difference(a: Run, b: Run, left: Sequence[Arr] = ()) -> str:
    """Where two runs differ, '' where they don't; ``left``: bytes of the buffers that are not compared."""
    for n, (x, y) in enumerate(zip(a.buffers, b.buffers, strict=True)):
        unlike = x.view(np.uint8) != y.view(np.uint8)
        wrong = np.flatnonzero(unlike & ~left[n] if left else unlike)
        if len(wrong):
            at = int(wrong[0])
            size = x.size // 128 if x.size >= 128 else x.size
            slots = sorted({int(o) % size // 4 * 4 for o in wrong})
            at4 = at // 4 * 4
            good, bad = (int.from_bytes(v.view(np.uint8)[at4 : at4 + 4].tobytes(), "little") for v in (x, y))
            return (
                f"buffer {n}: {len(wrong)} bytes, first at {at4} (thread {at // size}): {good:#010x} expected, "
                f"{bad:#010x} found; offsets {slots[:12]}"
            )
    return ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A wrong program: what is wrong (kind: value, run, refused, fault, undefined), with which kernel, compiled how."""

    kernel: str
    way: Way
    kind: str
    what: str
    data: int = 0

    def __str__(self) -> str:
        return f"{self.kind} in {self.kernel}, {self.way}: {self.what}"


def check(
    program: Program, way: Way, kernels: Sequence[str] = (), runs: int = 1, counts: dict[str, int] | None = None
) -> list[Fault]:
    """Compile in one way and run every kernel on ``runs`` sets of data. An undefined kernel is a fault of the program,
    not of the chain (kind undefined)."""
    try:
        cubin = way.compile(program.text)
    except ChainError as e:
        kind = "fault" if "internal fault" in str(e) else "refused"
        return [Fault("", way, kind, str(e).strip().splitlines()[-1] if str(e).strip() else "no message")]
    try:
        device = Device(cubin)
    except ImageError as e:
        return [Fault("", way, "fault", str(e))]
    found = []
    for kernel in kernels or program.kernels:
        for data in range(runs):
            good = program.expected(kernel, data)
            if good.error:
                found.append(Fault(kernel, way, "undefined", f"interpreter: {good.error}", data))
                break
            run = simulate(device, kernel, program.launch, data, way.strict)
            if counts is not None:
                counts["launches"] = counts.get("launches", 0) + 1
                counts["instructions"] = counts.get("instructions", 0) + run.instructions
            text = run.error or difference(good, run)
            if text and not run.error and good.open_nans:
                text = difference(good, run, program.open(kernel, data))
            if not text:
                continue
            shaky = program.defined(kernel, data)
            found.append(
                Fault(
                    kernel,
                    way,
                    "undefined" if shaky else "run" if run.error else "value",
                    f"{text} [{shaky}]" if shaky else text,
                    data,
                )
            )
            break
    return found


__all__ = ["Fault", "Launch", "ParseError", "Program", "Run", "Way", "check", "difference", "simulate"]
