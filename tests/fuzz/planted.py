"""Planted errors, and how many random modules find each of them.

    python -m tests.fuzz.planted [--seed N] [--count N] [--only TEXT ...] [--list]

A planted error is a function of the optimizer or scheduler with a few words changed. The source is unchanged: while the
changed stage runs, the function gets another code object (compiled stage modules do not allow that and are refused). A
module counts if a kernel whose code changed produces other bytes than the interpreter, or if the chain crashes.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Final

from ir_format.model import AttrValue
from orchestrator.api import ChainError, compile_ptx, finish
from stages.disasm.cubin import read_cubin
from stages.plumbing.chain import MIDDLE
from stages.plumbing.runner import Flags, run_stage
from stages.simulate import Device
from tests.fuzz import programs
from tests.fuzz.chain import ARCHES, floor, way_of
from tests.fuzz.judge import Program, Way, difference, simulate


@dataclass(frozen=True, slots=True)
class Error:
    """``where``: module and function. ``changes``: pairs of old and new text. ``strict``: shows only in the timed
    machine."""

    name: str
    where: str
    changes: tuple[tuple[str, str], ...]
    strict: bool = False


def _error(name: str, where: str, *texts: str, strict: bool = False) -> Error:
    return Error(name, where, tuple(zip(texts[::2], texts[1::2], strict=True)), strict)


ERRORS: Final = (
    _error("what is known of memory outlives a store", "stages.optimize.memory.redundancy:_Loads._store",
    "not disjoint(x, s, key[0], key[1], v.size)", "False"),
    _error("what is known of memory outlives a join", "stages.optimize.memory.redundancy:_Loads.run",
    "versions[pos][0][s] == versions[up][1][s]", "True"),
    _error("a part of a word hides the word", "stages.optimize.memory.redundancy:_dead_stores",
    "x.offset + x.size <= at + n", "True"),
    _error("joined tests lose a negation", "stages.optimize.scalar.predicates:join_tests",
    "turn[m.mods[0]] if test.flags & INV else m.mods[0]", "m.mods[0]"),
    _error("a header is copied whose results are read elsewhere", "stages.optimize.loops.rotate:_Rotator._plain",
    " or self.readers.get(r.num, set()) - {head}", ""),
    _error("loads move over stores", "stages.optimize.loops.licm:_Hoister._always", "self.stores[n].may_change(load)",
    "False"),
    _error("loads move that are not on every way", "stages.optimize.loops.licm:_Hoister._always",
    "return all(v.dominates(pos, p) for p in leaving)", "return True"),
    _error("a bound that wraps", "stages.optimize.loops.unroll:_Unroller._room",
    "return PT if (n >= edge if up else n <= edge) else NOT_PT", "return PT", "return d", "return PT"),
    _error("a whole turn of a counter", "stages.optimize.loops.unroll:_Unroller._left", "less = 1 if first else 0",
    "less = 0"),
    _error("a tail taken for exact", "stages.optimize.loops.unroll:_exact", "return abs(count.step) == 1",
    "return True", "if abs(count.step) != 1 or start", "if start"),
    _error("one round too many in four copies", "stages.optimize.loops.unroll:_Unroller._open",
    "limit = self._limit(go, bound, (_AT_ONCE - 1) * count.step)",
    "limit = self._limit(go, bound, (_AT_ONCE - 2) * count.step)"),
    _error("the first round forgotten", "stages.optimize.loops.unroll:_Unroller._open",
    '(done, never, PT, Imm("I", _OR), Imm("I", 0))', '(done, done, PT, Imm("I", _OR), Imm("I", 0))'),
    _error("<= for < in counted rounds", "stages.optimize.loops.induction:rounds", "(n - x) // step + 1",
    "-((x - n) // step)"),
    _error("steps folded over a write", "stages.optimize.loops.induction:_Steps._form",
    "self._version(b.num, b.sub) == got.low and (", "True or ("),
    _error("the upper word of folded steps", "stages.optimize.loops.induction:_Steps._upper",
    "if not same or not untouched or", "if not same or"),
    _error("any uniform register made again", "stages.optimize.late.rematerialize:_Finder._lasts",
    'made.op not in _CONSTANTS', "False", "not is_pure(made)", "False", "or read_regs(made)", "",
    "return self.together()", "return True"),
    _error("uniform registers where parts do not meet", "stages.optimize.late.uniform_promotion:paths_reconverge",
    "return False", "return True"),
    _error("counters of diverged threads in uniform registers", "stages.optimize.late.uniform_webs:_Webs.run",
    "all(pos in shared for pos, _ in w)", "True"),
    _error("a sum over a write of a term", "stages.optimize.scalar.wide_sums:_sum_at", "if web[r.num] in loose:",
    "if False:"),
    _error("a sign taken for zeros", "stages.optimize.scalar.wide_sums:_extended", 'return ("WIDE",), source',
    'return ("WIDE", "U32"), source'),
    _error("the field of IADD.64", "stages.optimize.scalar.wide_sums:fuse_pair",
    "if not -(1 << 31) <= (b.value ^ 1 << 63) - (1 << 63) < 1 << 31:", "if b.value >> 32:"),
    _error("halves shifted by different amounts", "stages.optimize.scalar.wide_sums:_shifted_pair",
    " or s.constant(shift.srcs[1]) != n", ""),
    _error("sums with negative terms", "stages.optimize.scalar.known_bits:_know_sum", "if negative or total > WORD",
    "if total > WORD"),
    _error("carries taken for impossible", "stages.optimize.scalar.known_bits:bound_carry", "if total > WORD:",
    "if total > 2 * WORD + 1:"),
    _error("lost bits in tests of zero", "stages.optimize.scalar.known_bits:zero_test",
    "if lost & ~known_bits(s, x)[0]:", "if False:"),
    _error("known bits in signed comparisons", "stages.optimize.scalar.known_bits:test_of_known",
    'if "U32" not in i.mods and one >> 31:', "if False:"),
    _error("a register kept for reuse that is overwritten", "stages.schedule.reuse:_hint",
    " and written.isdisjoint(range(a.num, a.num + a.width))", "", strict=True),
)  # fmt: skip


class Plant:
    """An error that can be enabled."""

    def __init__(self, error: Error) -> None:
        """Raises LookupError if the text no longer exists."""
        self.error = error
        name, path = error.where.split(":")
        module = importlib.import_module(name)
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part)
        if not isinstance(found, FunctionType):
            raise LookupError(f"{error.where} is compiled")
        source = textwrap.dedent(inspect.getsource(found))
        for old, new in error.changes:
            if old not in source:
                raise LookupError(f"{error.where} has no {old!r}")
            source = source.replace(old, new)
        made: dict[str, Any] = {}
        exec(compile("from __future__ import annotations\n" + source, error.where, "exec"), vars(module), made)
        self.function, self.sound, self.wrong = found, found.__code__, made[found.__name__].__code__
        self.stage = name.split(".")[1]
        self.changed = 0

    @contextmanager
    def on(self) -> Iterator[None]:
        self.function.__code__ = self.wrong
        try:
            yield
        finally:
            self.function.__code__ = self.sound


def _texts(cubin: bytes) -> dict[str, bytes]:
    """The code of each kernel."""
    return {s.name.removeprefix(".text."): bytes(s.data) for s in read_cubin(cubin).sections}


class Sound:
    """A program, its streams and its cubin."""

    def __init__(self, program: Program, way: Way) -> None:
        """Raises ChainError."""
        self.program, self.way = program, way
        self.streams: dict[str, bytes] = {}
        options: dict[str, AttrValue] = {"opt-level": way.level, "fmad": 0}
        if way.registers:
            options["maxrregcount"] = way.registers
        self.cubin = compile_ptx(program.text, way.arch, options, streams=self.streams)
        self.code = _texts(self.cubin)

    def shows(self, plant: Plant) -> str:
        """What is wrong with the error enabled, '' for nothing."""
        names = [s.name for s in MIDDLE]
        at = names.index(plant.stage)
        data = self.streams[names[at - 1]]
        try:
            with plant.on():
                data = _stage(plant.stage, data)
            if data == self.streams[plant.stage]:
                return ""
            for name in names[at + 1 :]:
                data = _stage(name, data)
            cubin = finish(data)
        except ChainError as e:
            return str(e)
        code = _texts(cubin)
        kernels = [k for k in self.program.kernels if code.get(k) != self.code.get(k)]
        plant.changed += len(kernels)
        device = Device(cubin)
        for k in kernels:
            for data_seed in range(2):
                good = self.program.expected(k, data_seed)
                if good.error:
                    break
                run = simulate(device, k, self.program.launch, data_seed, self.way.strict or plant.error.strict)
                if run.error or difference(good, run):
                    return f"{k}: {run.error or difference(good, run)}"
        return ""


def _stage(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    if run_stage(next(s for s in MIDDLE if s.name == name), io.BytesIO(data), out, Flags(quiet=True)) not in (0, 1):
        raise ChainError(f"{name} broke")
    return out.getvalue()


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="How many random modules find each planted error.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--kernels", type=int, default=6)
    parser.add_argument("--only", nargs="+", default=[""], help="errors whose names hold one of these")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    options = parser.parse_args()
    left: list[Plant] = []
    for e in ERRORS:
        if any(o in e.name for o in options.only):
            try:
                left.append(Plant(e))
            except LookupError as x:
                print(f"{e.name}: can't be planted: {x}")
    if options.list:
        print("\n".join(p.error.name for p in left))
        return 0
    began = time.monotonic()
    for n, seed in enumerate(range(options.seed, options.seed + options.count), 1):
        arch = ARCHES[seed % len(ARCHES)]
        program = Program(programs.module(seed, floor([arch], seed), options.kernels), programs.launch(seed))
        sound = Sound(program, replace(way_of(arch, 3, seed), strict=False))
        for plant in list(left):
            said = sound.shows(plant)
            if said:
                left.remove(plant)
                print(
                    (
                        f"{plant.error.name}: {n} modules, {plant.changed} kernels changed ({arch}, "
                        f"seed {seed}: {said[:100]})"
                    ),
                    flush=True,
                )
        if not left:
            break
    for plant in left:
        print(f"{plant.error.name}: not in {n} modules, {plant.changed} kernels changed")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
