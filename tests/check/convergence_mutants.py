"""How many mutants of synchronization the judges find: barriers, convergence barriers, warp barriers and fences
dropped, moved and altered.

    python -m tests.check.convergence_mutants [--sm 90] [--who ours|ptxas|both] [--count N] [--seed N] [--set
    own,kernels] [--seconds S] [--progress] [NAME ...]

The cubins are ours and ptxas's, of the kernels of tests/check/convergence and of those of tests/kernels that
synchronize. Judges, in turn: the convergence checker; the checker of records; values, a fault or a deadlock in the
simulator's own order, with the race detector; the other orders of warps. A mutant is *apart* if a computed reason says
that it changes nothing:

* ``never executed``: not in any launch;
* ``always together``: a WARPSYNC, BSYNC or BREAK at which, in every order of warps, no thread ever waits (data that no
  launch has may still need it);
* ``one warp``: a barrier of a block of one warp, all of whose threads reach it together;
* ``no data crosses``: a barrier of the whole block where no word that is accessed before it is accessed after it by
  another warp, with one of the two writing. (Moved: the access that it passes touches none; in a kernel with fences, no
  word of any block, and nothing is written to global memory before it.) Computed from a list of all accesses of the
  sound cubin (:mod:`convergence_trace`);
* ``other threads``: moved past an access under the opposite guard;
* ``same place for all``: another number for a barrier that all threads of the block reach at this instruction (the
  cubin declares that many barriers);
* ``beside another``: a barrier or fence without an access between it and another of its kind, in a basic block;
* ``publishes nothing``: a MEMBAR at which no thread of the block has accesses that it has not fenced, or that no strong
  write or atomic follows before the thread's next one (CCTL.IVALL is the acquiring half of a fence); ``acquires
  nothing``: a CCTL.IVALL before which the thread has, since its last one, read nothing that others write strongly, or
  after which it loads nothing before the next one;
* ``nothing to tell``: a fence between whose neighbours no thread writes what another one reads: dropping every fence
  of the kernel changes neither values nor races, in any order.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from ir_format import isa
from ir_format.model import INV
from orchestrator.api import ChainError, compile_ptx
from stages.check import convergence_checker
from stages.check.records import check_records
from stages.check.schedule_flow import branch_tables
from stages.disasm.cubin import WORD, Cubin, read_cubin
from stages.disasm.listing import decode_section
from stages.simulate import Device, ImageError, SimError
from stages.simulate.machine import Bundle, Machine
from stages.simulate.orders import ORDERS
from tests import oracle
from tests.check.convergence import cases
from tests.check.convergence_changes import Change, changes
from tests.check.convergence_trace import Trace, traced
from tests.kernels.run import SETS, ptx_for, run_launch

#: Orders of warps to try, with their seeds.
TRIES: Final = (*((order, 1) for order in ORDERS), ("random", 2))
THREADS: Final = 1024
_ACCESS: Final = (
    "LDS",
    "STS",
    "LDG",
    "STG",
    "LD",
    "ST",
    "ATOM",
    "ATOMG",
    "ATOMS",
    "RED",
    "REDG",
    "REDS",
    "LDGSTS",
    "SYNCS",
    "LDSM",
    "STSM",
)
#: Runs a launch on a device; returns what is wrong, and the statistics.
Run = Callable[..., tuple[str, Any]]


class Job(NamedTuple):
    """A kernel of one cubin with its launches."""

    name: str
    entry: str
    data: bytes
    runs: list[Run]
    block: int


class Verdict(NamedTuple):
    """``caught``: by which judge, or ""; ``apart``: why a survivor changes nothing, or ""."""

    caught: str
    apart: str


def _own(case: cases.Case) -> Run:
    def run(device: Device, **how: Any) -> tuple[str, Any]:
        args = case.args()
        device.reset()
        stats = device.launch(case.name, case.grid, case.block, args, **how)
        return case.check(args), stats

    return run


def _test(launch: Any) -> Run:
    def run(device: Device, **how: Any) -> tuple[str, Any]:
        wrong, stats = run_launch(device, launch, **how)
        return (wrong[0] if wrong else ""), stats

    return run


def _compiled(path: Path, sm: str, who: str) -> bytes | None:
    if who == "ptxas":
        got = oracle.run_ptxas(path, sm)
        return got.read_bytes() if isinstance(got, Path) else None
    try:
        return compile_ptx(path.read_text(), f"sm_{sm}", {})
    except ChainError:
        return None


def jobs(sm: str, who: str, sets: Iterable[str], names: list[str]) -> Iterable[Job]:
    """The kernels of the sets that have a synchronizing instruction."""
    number = int("".join(c for c in sm if c.isdigit()))
    if "own" in sets:
        for feature in (75, 80):
            mine = [c for c in cases.CASES if c.sm == feature and (not names or c.name in names)]
            data = _compiled(cases.HERE / f"kernels{feature}.ptx", sm, who) if number >= feature and mine else None
            for name in dict.fromkeys(c.name for c in mine) if data is not None else ():
                launches = [c for c in mine if c.name == name]
                block = launches[0].block
                yield Job(
                    name,
                    name,
                    data or b"",
                    [_own(c) for c in launches],
                    block if isinstance(block, int) else block[0] * block[1],
                )
    if "kernels" in sets:
        for name, spec in SETS["all"].items():
            if number < spec.min_sm or (names and name not in names):
                continue
            data = _compiled(ptx_for(spec, sm), sm, who)
            launches_ = [x for x in sorted(spec.launches(0), key=lambda x: x.threads()) if x.threads() <= THREADS]
            if data is not None and launches_:
                b = max(x.block[0] * x.block[1] * x.block[2] for x in launches_)
                yield Job(name, launches_[0].entry, data, [_test(x) for x in launches_[-4:]], b)


class Meetings:
    """Where threads waited for others of their warp, by instruction number, over all runs inside :meth:`watch`."""

    def __init__(self) -> None:
        self.waited: set[int] = set()

    def watch(self) -> Any:
        """A context in which machines report waits."""
        plain = Machine.converge

        def converge(machine: Machine, bundle: Bundle, k: int) -> bool:
            pc = bundle.pc
            went = plain(machine, bundle, k)
            if not went:
                self.waited.add(pc)
            return went

        return mock.patch.object(Machine, "converge", converge)


class Bench:
    """One kernel: the sound cubin's races, executed instructions and places of waiting."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.cubin: Cubin = read_cubin(job.data)
        self.device = Device(job.data)
        self.limits: list[int] = []
        self.races: list[set[tuple[Any, ...]]] = []
        meetings = Meetings()
        with meetings.watch():
            for run in job.runs:
                wrong, stats = run(self.device, races=True)
                assert not wrong, f"{job.name}: the sound cubin is wrong: {wrong}"
                assert not any(r.kind == "race" for r in stats.races), (
                    f"{job.name}: the sound cubin races: {stats.races[0].text}"
                )
                most = stats.instructions
                self.races.append({(r.kind, r.space, r.first, r.second) for r in stats.races})
                for order, seed in TRIES:
                    wrong, stats = run(self.device, order=order, seed=seed)
                    assert not wrong, f"{job.name}: the sound cubin is wrong in order {order}: {wrong}"
                    most = max(most, stats.instructions)
                self.limits.append(3 * most + 3000)
        self.waited = {self.device.program.addresses[pc] for pc in meetings.waited}
        self.bases = {s.name: s.base for s in self.device.image.code}
        self.tables = branch_tables(job.data)
        self.records = len(check_records(job.data))
        own = convergence_checker.check_bytes(job.data)
        assert not own.findings, f"{job.name}: the checker objects to the sound cubin: {own.findings[0]}"
        self.notes = len(own.notes)

    @cached_property
    def acted(self) -> set[tuple[str, int]]:
        """(function, offset) of instructions executed by some thread."""
        out: set[tuple[str, int]] = set()
        for run in self.job.runs:
            out |= set(run(self.device, cycles=True)[1].cycles["acted"])
        return out

    def judge(self, change: Change) -> Verdict:
        """Which judge finds a mutant; or why none needs to."""
        data = change.bytes(self.cubin)
        broken = read_cubin(data)
        part = broken._replace(sections=broken.sections[change.section : change.section + 1])
        report = convergence_checker.check_cubin(part, self.tables)
        if report.findings or len(report.notes) > self.notes:
            return Verdict("checker", "")
        if change.kind == "BAR number" and len(check_records(data)) > self.records:
            return Verdict("records", "")
        apart = self._why(change)
        if apart == "never executed":
            return Verdict("", apart)
        caught = self._runs(data)
        if caught:
            return Verdict(caught, "")
        return Verdict("", apart or self._silent_fence(change))

    def _runs(self, data: bytes) -> str:
        try:
            device = Device(data)
        except ImageError:
            return "fault"
        for run, known, limit in zip(self.job.runs, self.races, self.limits, strict=True):
            try:
                wrong, stats = run(device, races=True, limit=limit)
            except SimError as e:
                return "deadlock" if "deadlock" in str(e) else "fault"
            if wrong:
                return "values"
            pairs = {(r.kind, r.space, r.first, r.second) for r in stats.races}
            if any(r.kind in ("race", "parted") for r in stats.races) or {p[0] for p in pairs} - {p[0] for p in known}:
                return "race"
        for run, limit in zip(self.job.runs, self.limits, strict=True):
            for order, seed in TRIES:
                try:
                    wrong, _ = run(device, order=order, seed=seed, limit=limit)
                except SimError as e:
                    return "order: deadlock" if "deadlock" in str(e) else "order: fault"
                if wrong:
                    return "order: values"
        return ""

    def _why(self, change: Change) -> str:
        section = self.cubin.sections[change.section]
        op = change.kind.split()[0]
        offset = change.place * WORD
        name, base = next(((n, at) for at, size, n, _ in section.symbols if at <= offset < at + max(size, 1)), ("", 0))
        if (name, offset - base) not in self.acted:
            return "never executed"
        if (
            op in ("WARPSYNC", "BREAK")
            and self.bases.get(section.name, -1) + offset not in self.waited
            and not (op == "BREAK" and self.waited)
        ):
            return "always together"
        if op == "BAR":
            reason = self._barrier(change, self.bases.get(section.name, -1) + offset)
            if reason:
                return reason
        if op in ("BAR", "MEMBAR", "CCTL", "FENCE") and self._beside(change, op):
            return "beside another"
        return ""

    def _barrier(self, change: Change, address: int) -> str:
        """Why a barrier of the block may be missing, moved or replaced."""
        if self.job.block <= 32:
            return "one warp"
        target = isa.target(self.cubin.sm)
        items = decode_section(self.cubin.sections[change.section], target)
        inst = items[change.place].inst
        guard = inst.guard if inst is not None else None
        index = self.device.program.index(address)
        kind = change.kind.split()[1]
        if kind == "number":
            all_here = all(
                index not in waited or waited == {index} for t in self.traces for waited in t.closed.values()
            )
            return (
                "same place for all"
                if all_here and any(index in waited for t in self.traces for waited in t.closed.values())
                else ""
            )
        if kind in ("earlier", "later"):
            far = max((n for n, _ in change.words), key=lambda n: abs(n - change.place))
            passed = items[far].inst
            if (
                guard is not None
                and passed is not None
                and passed.guard is not None
                and passed.guard == guard._replace(flags=guard.flags ^ INV)
            ):
                return "other threads"
            access = index + far - change.place
            if (
                passed is not None
                and passed.op not in ("LDS", "STS", "ATOMS")
                and any(i.inst is not None and i.inst.op == "MEMBAR" for i in items)
            ):
                return "no data crosses" if all(t.alone(access, kind == "later") for t in self.traces) else ""
            crossing = any(t.passes(index, access, kind == "later") for t in self.traces)
            return "" if crossing else "no data crosses"
        if kind != "dropped" or (
            any(i.inst is not None and i.inst.op == "MEMBAR" for i in items)
            and any(t.writes(index) for t in self.traces)
        ):
            return ""
        return "" if any(t.crosses(index) for t in self.traces) else "no data crosses"

    @cached_property
    def traces(self) -> list[Trace]:
        """Accesses of the sound cubin's launches."""
        return [traced(run, self.device) for run in self.job.runs]

    def _beside(self, change: Change, op: str) -> bool:
        items = decode_section(self.cubin.sections[change.section], isa.target(self.cubin.sm))
        for step in (1, -1):
            n = change.place + step
            while 0 <= n < len(items):
                inst = items[n].inst
                if (
                    inst is None
                    or inst.op in ("BRA", "EXIT", "BRX", "CALL", "RET", *_ACCESS)
                    or (step < 0 and any(i.target == (n + 1) * WORD for i in items))
                ):
                    break
                if inst.op == op and inst.guard is None and ("ARV" not in inst.mods):
                    return True
                n += step
        return False

    def _silent_fence(self, change: Change) -> str:
        op = change.kind.split()[0]
        if op not in ("MEMBAR", "CCTL", "FENCE"):
            return ""
        index = self.device.program.index(
            self.bases.get(self.cubin.sections[change.section].name, -1) + change.place * WORD
        )
        if op != "FENCE" and all(t.unused(index, op == "MEMBAR") for t in self.traces):
            return "publishes nothing" if op == "MEMBAR" else "acquires nothing"
        return "nothing to tell" if not self._without(op) else ""

    def _without(self, op: str) -> str:
        """Which judge finds the kernel with all fences of a kind dropped."""
        if op not in self._bare:
            every = [c for c in changes(self.cubin, frozenset((self.job.entry,))) if c.kind == f"{op} dropped"]
            words = tuple(w for c in every for w in c.words)
            self._bare[op] = self._runs(Change("", every[0].section, 0, words, "").bytes(self.cubin))
        return self._bare[op]

    @cached_property
    def _bare(self) -> dict[str, str]:
        return {}


@dataclass(slots=True)
class Tally:
    """Counts by kind of mutant."""

    made: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)
    by: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    survivors: list[str] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)

    def note(self, kind: str, verdict: Verdict, text: str) -> None:
        self.made[kind] += 1
        if verdict.caught:
            self.caught[kind] += 1
            self.by[verdict.caught] += 1
        elif verdict.apart:
            self.apart[kind] += 1
            self.reasons[verdict.apart] += 1
        else:
            self.survivors.append(f"{kind}: {text}")

    def table(self) -> str:
        """The whole table as text."""
        lines = [
            f"  {kind}: {self.caught[kind]} of {n - self.apart[kind]} (and {self.apart[kind]} apart)"
            for kind, n in sorted(self.made.items())
        ]
        total, caught, apart = sum(self.made.values()), sum(self.caught.values()), sum(self.apart.values())
        share = 100 * caught / max(total - apart, 1)
        lines.append(
            f"  all: {caught} of {total - apart} = {share:.1f} % (and {apart} apart: "
            f"{dict(self.reasons)}); found by {dict(self.by)}"
        )
        return "\n".join(lines)


def run(
    sm: str,
    who: str,
    sets: Iterable[str],
    names: list[str],
    count: int,
    seed: int,
    say: bool = False,
    seconds: float = 1e9,
) -> Tally:
    """Judge up to ``count`` mutants of each kind and kernel (0: all); no kernel begins after ``seconds``."""
    tally = Tally()
    began = time.monotonic()
    for job in jobs(sm, who, sets, names):
        found = list(changes(read_cubin(job.data), frozenset((job.entry,))))
        if not found:
            continue
        if time.monotonic() - began > seconds:
            print(f"sm_{sm} {who} {job.name}: left out, time is up")
            continue
        try:
            bench = Bench(job)
        except (AssertionError, SimError) as e:
            tally.unfit.append(f"{job.name}: {e}")
            continue
        rng = random.Random(f"{seed} {sm} {who} {job.name}")
        for kind in dict.fromkeys(c.kind for c in found):
            mine = [c for c in found if c.kind == kind]
            for change in mine if not count or len(mine) <= count else rng.sample(mine, count):
                tally.note(kind, bench.judge(change), f"sm_{sm} {who} {change.text}")
        if say:
            print(
                (
                    f"sm_{sm} {who} {job.name}: {sum(tally.made.values())} judged, "
                    f"{len(tally.survivors)} survive, {time.monotonic() - began:.0f} s"
                ),
                flush=True,
            )
    return tally


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="kill rates of the judges of convergence")
    parser.add_argument("--sm", action="append", default=[], help="75, 80, 90, ... (default 75 80 90 100 120)")
    parser.add_argument("--who", choices=("ours", "ptxas", "both"), default="both")
    parser.add_argument("--count", type=int, default=2, help="mutants of each kind and kernel, 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", default="own,kernels")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="begin no kernel after this time (for each SM and compiler)"
    )
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(argv)
    left = 0
    for sm in options.sm or ["75", "80", "90", "100", "120"]:
        for who in ("ours", "ptxas") if options.who == "both" else (options.who,):
            tally = run(
                sm,
                who,
                options.set.split(","),
                options.names,
                options.count,
                options.seed,
                options.progress,
                options.seconds,
            )
            for text in tally.unfit:
                print(f"not judged: sm_{sm} {who} {text}")
            for text in tally.survivors:
                print(f"survives: {text}")
            print(f"sm_{sm} {who}\n{tally.table()}", flush=True)
            left += len(tally.survivors) + len(tally.unfit)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
