"""Cubins with one instruction that computes something else; co-simulation judges them.

Four kinds, planted in the machine code of any compiler: a predicate inverted, an immediate off by one, two registers of
an instruction exchanged, all accesses to one spill slot sent to another. Launches, interpreter runs and the comparison
are those of ``orias-check --cosim``, computed once per kernel.

A survivor is apart if an argument shows that nothing has changed:

* ``never reached``: the instruction is issued in no launch;
* ``nobody reads it``: no register that the instruction writes, before or after the change, reaches a store, a branch or
  an address (over all paths);
* ``within the error of approximations``: the kernel uses approximate instructions, and its results change by less than
  their allowed error;
* ``the same value``: in both programs the registers that the sound instruction writes have equal values after it each
  time it is issued, in every lane (compared in the simulator, launch by launch), and nothing reads registers that only
  the changed one writes. No test with these launches can see such a change, and most are true identities (max(x, -1)
  of lengths; a quadrant that another register already has).
"""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import ENDS, JUMPS
from ir_format.hazards import Access, hazards
from ir_format.model import INV, ZERO, Imm, Inst, Mem, Reg
from stages.check.cosim import Cosim, Stable
from stages.check.executors import approximates, prepare, simulate
from stages.check.launches import launches
from stages.check.memory_compare import memory_of
from stages.check.schedule_flow import Flow, branch_tables
from stages.disasm.cubin import WORD, Cubin, read_cubin
from stages.disasm.listing import decode_section
from stages.simulate import Device, ImageError
from tests.check.schedule_mutants import Mutant

#: Launches of the second look at a survivor: those of the first look are not repeated; seeds end here.
MORE_SEEDS: Final = 56
#: Steps of the interpreter that a launch may take: mutants that do not end run four times as long as the sound code.
STEPS: Final = 15_000
KINDS: Final = ("predicate", "immediate", "registers", "slot")
_FLOW: Final = (
    JUMPS
    | ENDS
    | {
        "CALL",
        "BSSY",
        "BSYNC",
        "WARPSYNC",
        "BAR",
        "DEPBAR",
        "NOP",
        "BREAK",
        "YIELD",
        "LEPC",
        "BMOV",
        "ERRBAR",
        "MEMBAR",
    }
)
#: Instructions whose first two operands may be exchanged, whatever their values.
_COMMUTE: Final = frozenset(
    [
        "IADD3",
        "IADD",
        "FADD",
        "FMUL",
        "FFMA",
        "DADD",
        "DMUL",
        "DFMA",
        "HADD2",
        "HMUL2",
        "HFMA2",
        "IMAD",
        "IDP",
        "IMNMX",
        "FMNMX",
        "VIMNMX",
        "UIADD3",
        "UIMAD",
        "FADD2",
        "FMUL2",
        "FFMA2",
    ]
)


#: Classes of the hazard tables whose instructions do nothing but write registers.
_PURE: Final = frozenset(
    [
        "alu",
        "dual",
        "fma",
        "imadw",
        "imadhi",
        "half",
        "hcmp",
        "hf32",
        "fp64",
        "iadd64",
        "alu64",
        "setp64",
        "disp64",
        "xu",
        "lds",
        "ldg",
        "ldl",
        "ldc",
        "udp",
        "udp64",
        "uldc",
        "uflt",
        "r2p",
        "p2r",
    ]
)


def used_behind(cubin: Cubin, section: int) -> list[int]:
    """For each instruction the registers (bitset) whose value after it reaches a store, a branch or any other
    effect."""
    h = hazards(cubin.sm)
    items = decode_section(cubin.sections[section], isa.target(cubin.sm))
    flow = Flow(cubin.sections[section], items, branch_tables(cubin.data).get(cubin.sections[section].name, {}))
    accesses = [h.access(item.inst) if item.inst is not None else None for item in items]
    before = [0] * len(items)
    behind = [0] * len(items)
    changed = True
    while changed:
        changed = False
        for n in range(len(items) - 1, -1, -1):
            live = 0
            for k in flow.succs[n] if n < len(flow.succs) else ():
                live |= before[k]
            a = accesses[n]
            behind[n] = live
            if a is None or n in flow.lost or n in flow.leaving:
                live = -1
            elif a.klass not in _PURE or a.write_mask & live:
                live = live & ~(0 if a.guarded else a.write_mask) | _needed(a, live)
            if live != before[n]:
                before[n] = live
                changed = True
    return behind


def _needed(a: Access, live: int) -> int:
    """The registers that an instruction reads to compute those parts of its results that are used: the lower word of a
    wide product and sum needs no upper word of the addend."""
    if a.klass != "imadw" or any(live >> cell & 1 for cell, name, _ in a.writes if name != "wlo"):
        return a.read_mask
    return sum(1 << cell for cell in {cell for cell, role, _ in a.reads if role != "chi"})


class Group:
    """Several words changed together, with the interface of a :class:`Mutant` for the judges."""

    def __init__(self, parts: list[Mutant]) -> None:
        self.parts = parts
        self.kind, self.section, self.place, self.partner = parts[0].kind, parts[0].section, parts[0].place, -1

    def bytes(self, cubin: Cubin) -> bytes:
        """The whole file with the mutant in it."""
        out = bytearray(cubin.data)
        for m in self.parts:
            at = cubin.sections[m.section].offset + m.place * WORD
            out[at : at + WORD] = m.value.to_bytes(WORD, "little")
        return bytes(out)


def _variants(inst: Inst) -> Iterator[tuple[str, Inst]]:
    """Every possible change of one instruction: kind, the changed one."""

    def edit(**changes: Any) -> Inst:
        out = copy.copy(inst)
        for name, value in changes.items():
            setattr(out, name, value)
        return out

    srcs = inst.srcs
    if inst.guard is not None and inst.guard.num != ZERO:
        yield "predicate", edit(guard=inst.guard._replace(flags=inst.guard.flags ^ INV))
    for n, o in enumerate(srcs):
        if type(o) is Reg and o.file in ("P", "UP") and o.num != ZERO:
            yield "predicate", edit(srcs=(*srcs[:n], o._replace(flags=o.flags ^ INV), *srcs[n + 1 :]))
    if inst.op in _FLOW:
        return
    for n, o in enumerate(srcs):
        if type(o) is Imm and type(o.value) is int:
            yield "immediate", edit(srcs=(*srcs[:n], o._replace(value=o.value + 1), *srcs[n + 1 :]))
    vector = [
        (side, n, o)
        for side in ("dsts", "srcs")
        for n, o in enumerate(getattr(inst, side))
        if type(o) is Reg and o.file == "R" and o.num != ZERO
    ]
    for i, (side, n, o) in enumerate(vector):
        for side2, n2, o2 in vector[i + 1 :]:
            if o.num == o2.num or o.width != o2.width:
                continue
            if side == side2 == "srcs" and (
                (inst.op in _COMMUTE and n + n2 == 1)
                or inst.op in ("IADD3", "LOP3")
                or (inst.op == "ISETP" and ("EQ" in inst.mods or "NE" in inst.mods))
            ):
                continue  # equal by algebra, or (LOP3) for many tables
            out = edit()
            for where, k, reg, num in ((side, n, o, o2.num), (side2, n2, o2, o.num)):
                operands = list(getattr(out, where))
                operands[k] = reg._replace(num=num)
                setattr(out, where, tuple(operands))
            yield "registers", out


def mutants(cubin: Cubin) -> list[Any]:
    """Every mutant of a cubin that its encoding allows."""
    target = isa.target(cubin.sm)
    out: list[Any] = []
    for s, section in enumerate(cubin.sections):
        spills: dict[int, list[tuple[int, Inst]]] = {}
        for place, item in enumerate(decode_section(section, target)):
            if item.inst is None:
                continue
            for kind, changed in _variants(item.inst):
                try:
                    word = target.encode(changed, item.pc)
                except CompileError:
                    continue
                if word != item.word and (
                    kind != "immediate" or target.format(changed) != target.format(item.inst)
                ):  # some operands are not printed
                    out.append(Mutant(kind, s, place, "word", word))
            if item.inst.op in ("STL", "LDL"):
                memory = next((o for o in item.inst.srcs if type(o) is Mem), None)
                if memory is not None and memory.base is not None and memory.base.num == 1:
                    spills.setdefault(memory.offset, []).append((place, item.inst))
        out += _shared(s, spills, target)
    return out


def _shared(s: int, spills: dict[int, list[tuple[int, Inst]]], target: Any) -> Iterator[Group]:
    """One slot's accesses moved to the next slot of the same size."""
    slots = sorted(at for at, users in spills.items() if {i.op for _, i in users} == {"STL", "LDL"})
    for old in slots:
        new = next(
            (at for at in slots if at != old and {i.mods for _, i in spills[at]} == {i.mods for _, i in spills[old]}),
            None,
        )
        if new is None:
            continue
        parts = []
        for place, inst in spills[old]:
            changed = copy.copy(inst)
            changed.srcs = tuple(o._replace(offset=new) if type(o) is Mem else o for o in inst.srcs)
            parts.append(Mutant("slot", s, place, "word", target.encode(changed, place * WORD)))
        yield Group(parts)


@contextmanager
def tracing(index: int, rows: list[Any]) -> Iterator[Any]:
    """While active, the values of `rows` after an instruction (files and numbers of registers; if empty: those that the
    instruction writes, filled in) are added to a running hash, which the context returns."""
    import stages.simulate.device as module

    home: Any = module
    plain: Any = home.Compiled
    log = hashlib.blake2b()

    class Tracing(plain):  # type: ignore[misc]
        """Compiles one instruction so that its results are recorded."""

        def compile(self, at: int) -> Any:
            fn = super().compile(at)
            if at != index:
                return fn
            if not rows:
                rows.extend(dict.fromkeys(self.build_of(at).writes))

            def noted(v: Any, m: Any) -> None:
                fn(v, m)
                lanes = np.ones(v.n, np.bool_) if m is None else m
                for file, number in rows:
                    held = (v.U if file == "U" else v.P)[number]
                    log.update((np.where(lanes, held, 0) if len(held) == len(lanes) else held).tobytes())

            self.fns[at] = noted
            return noted

    home.Compiled = Tracing
    try:
        yield log
    finally:
        home.Compiled = plain


@cache
def interpreted(text: str, arch: str, seeds: int | None) -> tuple[Cosim, list[tuple[Any, ...]]]:
    """The launches of a module, interpreted once for all compilers: (kernel, launch, outcome, compared parts,
    whether loosely, seed)."""
    cosim, runs = Cosim(text, arch, {}, seeds, STEPS), []
    for entry, code in cosim.module.codes.items():
        loose = approximates(code.unit)
        runs += [
            (entry, launch, base, stable, loose, launch.seed)
            for launch, base, stable in cosim.judged(code.unit, quiet=True)
        ]
    return cosim, runs


class Bench:
    """One kernel with its launches, interpreted once."""

    def __init__(self, name: str, text: str, arch: str, data: bytes, seeds: int | None = None) -> None:
        self.name = name
        self.cubin = read_cubin(data)
        self.cosim, self.runs = interpreted(text, arch, seeds)
        self._more: list[tuple[Any, ...]] | None = None
        self.note = ""
        assert self.runs, f"{name}: nothing can be judged"
        self.limit: int | None = None
        assert not self.wrong(data), f"{name}: the sound cubin differs"
        device = Device(data)
        self.reached: set[tuple[int, int]] = set()
        most = 0
        sections = {name: k for k, s in enumerate(self.cubin.sections) for _, _, name, _ in s.symbols}
        for _, launch, _, _, _, seed in self.runs:
            stats = device.launch(
                launch.entry,
                launch.grid,
                launch.block,
                prepare(device, launch),
                shared=launch.shared,
                seed=seed,
                cycles=True,
            )
            most = max(most, stats.instructions)
            for function, offset, *_ in stats.cycles["instructions"]:  # type: ignore[attr-defined]
                if function in sections:
                    self.reached.add((sections[function], offset // WORD))
        self.limit = 4 * most + 10_000  # a mutant that runs much longer than the sound code is caught

    def wrong(self, data: bytes) -> bool:
        """Whether co-simulation objects to a cubin."""
        try:
            device = Device(data)
        except ImageError:
            return True
        for _, launch, base, stable, loose, seed in self.runs:
            got = simulate(device, launch, seed=seed, limit=self.limit)
            if got.error or self.cosim._first(launch, base, got, stable, loose) is not None:
                return True
        return False

    def judge(self, mutant: Any) -> tuple[bool, str]:
        """(caught, why a survivor changes nothing); `note` says what more launches show of a survivor."""
        self.note = ""
        if self.wrong(mutant.bytes(self.cubin)):
            return True, ""
        if (mutant.section, mutant.place) not in self.reached:
            return False, "never reached"
        if self._unread(mutant):
            return False, "nobody reads it"
        if self._same(mutant):
            return False, "the same value"
        near = self._near(mutant)
        return False, "within the error of approximations" if near and not self.note else ""

    def more(self) -> list[tuple[Any, ...]]:
        """Launches beyond those of co-simulation, for a second look at survivors."""
        if self._more is None:
            self._more = []
            seen = {seed for *_, seed in self.runs}
            for entry, code in self.cosim.module.codes.items():
                for shape, seed in launches(self.cosim.module.module, code.unit, MORE_SEEDS):
                    launch, base = self.cosim.sound(code.unit, shape, seed) if seed not in seen else (None, None)
                    if launch is not None and base is not None:
                        self._more.append(
                            (
                                entry,
                                launch,
                                base,
                                Stable({k: np.ones(len(v), np.bool_) for k, v in memory_of(base).items()}),
                                approximates(code.unit),
                                seed,
                            )
                        )
        return self._more

    def _near(self, mutant: Any) -> bool:
        """Whether a survivor changes results of a kernel with approximations (too little to distinguish from an allowed
        error), in more launches too. If these show more than that, `note` says so."""
        sound, changed = Device(self.cubin.data), Device(mutant.bytes(self.cubin))
        near = False
        for _, launch, _, stable, loose, seed in [*self.runs, *self.more()]:
            a, b = (
                simulate(sound, launch, seed=seed),
                simulate(changed, launch, seed=seed, limit=50 * (self.limit or 0)),
            )
            if b.error or self.cosim._first(launch, a, b, stable, loose) is not None:
                self.note = f"seed {seed} shows it"
                break
            near |= any(((a.buffers[k] != b.buffers[k]) & stable.keep[k]).any() for k in a.buffers)
        return near

    def _unread(self, mutant: Any) -> bool:
        if isinstance(mutant, Group):
            return False
        h, target = hazards(self.cubin.sm), isa.target(self.cubin.sm)
        live = used_behind(self.cubin, mutant.section)[mutant.place]
        for word in (self.cubin.sections[mutant.section].words[mutant.place], mutant.value):
            inst = target.decode(word, mutant.place * WORD)
            if not isinstance(inst, Inst):
                return False
            a = h.access(inst)
            if a.klass not in _PURE or a.write_mask & live:
                return False
        return True

    def _same(self, mutant: Any) -> bool:
        """Whether the mutated instruction writes what the sound one writes, each time."""
        if isinstance(mutant, Group):
            return False
        target = isa.target(self.cubin.sm)
        word = self.cubin.sections[mutant.section].words[mutant.place]
        sound, changed = target.decode(word, mutant.place * WORD), target.decode(mutant.value, mutant.place * WORD)
        if not isinstance(sound, Inst) or not isinstance(changed, Inst) or not sound.dsts:
            return False
        if sound.dsts != changed.dsts:
            h = hazards(self.cubin.sm)
            old, new = h.access(sound), h.access(changed)
            live = used_behind(self.cubin, mutant.section)[mutant.place]
            if old.klass not in _PURE or new.write_mask & ~old.write_mask & live:
                return False
        rows: list[Any] = []
        logs = []
        for data in (self.cubin.data, mutant.bytes(self.cubin)):
            device = Device(data)
            with tracing(_number(device, self.cubin, mutant), rows) as log:
                for _, launch, _, _, _, seed in self.runs:
                    simulate(device, launch, seed=seed)
            logs.append(log.digest())
        return bool(rows) and logs[0] == logs[1]


def _number(device: Any, cubin: Cubin, mutant: Any) -> int:
    """The simulator's number of an instruction: sections follow each other by base address."""
    image = device.image
    base = next(c.base for c in image.code if c.name == cubin.sections[mutant.section].name)
    return int(device.program.addresses.index(base + mutant.place * WORD))


def sample(
    found: list[Any], per_kind: int, rng: random.Random, wanted: Callable[[Any], bool] = lambda m: True
) -> list[Any]:
    """Some mutants of each kind."""
    out: list[Any] = []
    for kind in KINDS:
        mine = [m for m in found if m.kind == kind and wanted(m)]
        out += rng.sample(mine, min(per_kind, len(mine)))
    return out
