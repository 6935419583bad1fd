"""Mutants and their judges: how many of each kind each judge catches, and what survives.

    python -m tests.check.mutants [--sm 80] [--who ours|ptxas|both] [--judge schedule,strict,cosim,allocation] [--count
    N] [--seed S] [NAME ...]

Kinds that break control words are judged by the schedule checker and the strict simulator; kinds that change the
computation by co-simulation; faults of register allocation, planted in allocated units, by the allocation checker.
Places are drawn from a seed, in our cubins and in ptxas's of the 16 kernels. Survivors are printed. Survivors that an
argument shows to change nothing are counted apart (the arguments are in :mod:`tests.check.strict_mutants` and
:mod:`tests.cosim.mutants`).
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ir_format import isa
from ir_format.model import Inst
from orchestrator.api import compile_ptx
from stages.check.schedule_checker import check_bytes, check_cubin
from stages.disasm.cubin import WORD, Cubin, read_cubin
from tests import oracle
from tests.check.schedule_mutants import certain
from tests.check.strict_mutants import Bench as StrictBench
from tests.cosim import mutants as code
from tests.kernels import cases
from tests.kernels.run import ptx_for

JUDGES = ("schedule", "strict", "cosim", "allocation")
#: A kernel with stack slots, as the others have none at any limit of registers; only for co-simulation.
SPILLING = "spilling"
#: Values that it needs twice, in different orders, and its number of registers.
LIVE, FEW_REGISTERS = 40, 24
CONTROL_KINDS = ("stall raw", "stall waw", "wait result", "wait read", "index result", "index read", "reuse")


class Tally:
    """Counts by (judge, kind): made, caught, apart; the rest survived."""

    def __init__(self) -> None:
        self.made: Counter[tuple[str, str]] = Counter()
        self.caught: Counter[tuple[str, str]] = Counter()
        self.apart: Counter[tuple[str, str]] = Counter()
        self.reasons: Counter[tuple[str, str, str]] = Counter()
        self.survivors: list[str] = []

    def note(self, judge: str, kind: str, caught: bool, apart: str, text: str) -> None:
        """One mutant's fate."""
        key = (judge, kind)
        self.made[key] += 1
        if caught:
            self.caught[key] += 1
        elif apart:
            self.apart[key] += 1
            self.reasons[(judge, kind, apart)] += 1
        else:
            self.survivors.append(f"{judge}: {kind}: {text}")

    def rate(self, judge: str) -> float:
        """Caught among those that are not apart; 1.0 for none."""
        made = sum(n - self.apart[key] for key, n in self.made.items() if key[0] == judge)
        return sum(n for key, n in self.caught.items() if key[0] == judge) / made if made else 1.0

    def table(self) -> str:
        """One line per judge and kind."""
        out = [f"{'judge':10} {'kind':14} {'made':>5} {'apart':>5} {'caught':>6}  rate"]
        for key in sorted(self.made, key=lambda k: (JUDGES.index(k[0]), k[1])):
            left = self.made[key] - self.apart[key]
            why = ", ".join(
                f"{n} {reason}" for (j, kind, reason), n in sorted(self.reasons.items()) if (j, kind) == key
            )
            share = f"{100 * self.caught[key] / left:5.1f} %" if left else "    -"
            out.append(
                f"{key[0]:10} {key[1]:14} {self.made[key]:5} {self.apart[key]:5} {self.caught[key]:6} {share}"
                + (f"  ({why})" if why else "")
            )
        out += [f"{judge}: {100 * self.rate(judge):.1f} %" for judge in JUDGES if any(k[0] == judge for k in self.made)]
        return "\n".join(out)


def describe(cubin: Cubin, mutant: Any) -> str:
    """The instructions of a mutant, as text."""
    target = isa.target(cubin.sm)
    words = cubin.sections[mutant.section].words
    out = []
    for place in sorted({mutant.place, mutant.partner} - {-1}):
        inst = target.decode(words[place], place * WORD)
        if isinstance(inst, Inst):
            out.append(f"{place * WORD:#06x} {target.format(inst)} {{stall {inst.ctl.stall if inst.ctl else '?'}}}")
    value = getattr(mutant, "value", None)
    if getattr(mutant, "field", "word") != "word":
        out.append(f"{mutant.field} := {value}")
    elif value is not None:
        inst = target.decode(value, mutant.place * WORD)
        out.append(f"-> {target.format(inst) if isinstance(inst, Inst) else 'no instruction'}")
    return " | ".join(out)


def cubin_of(name: str, sm: str, who: str, exact: bool) -> bytes | None:
    """A kernel's cubin; ``exact``: for co-simulation, without fused multiply-add. None if the compiler refuses."""
    text = text_of(name, sm)
    few = exact and name == SPILLING
    if who == "ptxas":
        got = oracle.compile_ptx(
            text, sm, *(("-fmad", "false") if exact else ()), *(("-maxrregcount", str(FEW_REGISTERS)) if few else ())
        )
        return got.read_bytes() if isinstance(got, Path) else None
    options: dict[str, Any] = {"fmad": 0} if exact else {}
    if few:
        options["maxrregcount"] = FEW_REGISTERS
    return compile_ptx(text, f"sm_{sm}", options)


def text_of(name: str, sm: str) -> str:
    """The PTX of one of the kernels, or of the spilling one: sums of products of neighbours, then the same products
    with factors in another order."""
    if name != SPILLING:
        return ptx_for(cases.CASES[name], sm).read_text()
    lines = [
        (
            f".version 8.8\n.target sm_{sm}\n.address_size 64\n.visible .entry {name}(.param .u64 in, "
            f".param .u64 out, .param .u32 n)"
        )
    ]
    lines.append(
        "{ .reg .u64 %d<4>; .reg .u32 %r<4>; .reg .s32 %v<"
        + f"{LIVE}>; .reg .s32 %w<{LIVE}>; .reg .s32 %s<2>; .reg .pred %p;"
    )
    lines.append(
        "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [n]; mov.u32 %r1, %ctaid.x; "
        "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;"
    )
    lines.append(
        "mad.lo.u32 %r1, %r1, %r2, %r3; setp.ge.u32 %p, %r1, %r0; @%p exit; mul.wide.u32 %d2, %r1, 4; "
        "add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;"
    )
    lines += [f"ld.global.s32 %v{i}, [%d0+{128 * i}];" for i in range(LIVE)]
    lines += [f"mad.lo.s32 %w{i}, %v{i}, %v{(i + 1) % LIVE}, %v{(i + 7) % LIVE};" for i in range(LIVE)]
    lines += ["mov.u32 %s0, 1; mov.u32 %s1, 1;"]
    lines += [f"mad.lo.s32 %s0, %s0, %w{i}, {i + 3};" for i in range(LIVE)]
    lines += [f"mad.lo.s32 %s0, %s0, %w{i * 17 % LIVE}, {i + 5};" for i in range(LIVE)]
    return "\n".join([*lines, "st.global.s32 [%d1], %s0; ret; }", ""])


def control_words(
    tally: Tally, name: str, sm: str, who: str, judges: tuple[str, ...], count: int, rng: random.Random
) -> None:
    """Mutants of control words of one kernel, by the schedule checker and the strict simulator."""
    data = cubin_of(name, sm, who, exact=False)
    if data is None:
        return
    cubin = read_cubin(data)
    assert not check_bytes(data).findings, f"{name}: the schedule checker objects to the sound cubin"
    bench = StrictBench(cases.CASES[name], data) if "strict" in judges else None
    found = certain(cubin, rng)
    for kind in CONTROL_KINDS:
        mine = [m for m in found if m.kind == kind]
        for mutant in rng.sample(mine, min(count, len(mine))):
            text = f"sm_{sm} {who} {name}: {describe(cubin, mutant)}"
            if "schedule" in judges:
                report = check_cubin(mutant.apply(cubin))
                tally.note("schedule", kind, bool(report.findings), "", text)
            if bench is not None:
                verdict = bench.judge(mutant)
                tally.note("strict", kind, bool(verdict.caught), verdict.apart, text)


def computations(tally: Tally, name: str, sm: str, who: str, count: int, rng: random.Random) -> None:
    """Mutants of one kernel's computation, by co-simulation."""
    data = cubin_of(name, sm, who, exact=True)
    if data is None:
        return
    bench = code.Bench(name, text_of(name, sm), f"sm_{sm}", data)
    for mutant in code.sample(code.mutants(bench.cubin), count, rng):
        caught, apart = bench.judge(mutant)
        tally.note(
            "cosim",
            mutant.kind,
            caught,
            apart,
            f"sm_{sm} {who} {name}: {describe(bench.cubin, mutant)}{bench.note and f' ({bench.note})'}",
        )


def allocation(tally: Tally, sms: list[str], names: list[str], count: int, seed: int) -> None:
    """Faults of allocation in random programs and in the kernels, by the allocation checker; those that change no value
    in the executions are apart."""
    from tests.regalloc.test_fuzz import kernel_pairs, kill_rate, random_pairs

    rates = [kill_rate(random_pairs(range(seed * 10000, seed * 10000 + 20 * count)))]
    rates += [kill_rate(kernel_pairs(f"sm_{sm}", names, count), 16) for sm in sms]
    for table, survivors in rates:
        for kind, (made, changed, killed) in table.items():
            key = ("allocation", kind)
            tally.made[key] += made
            tally.apart[key] += made - changed
            tally.caught[key] += killed
            if made > changed:
                tally.reasons["allocation", kind, "no value changes"] += made - changed
        tally.survivors += [f"allocation: {s}" for s in survivors]


def run(
    sms: list[str],
    sides: tuple[str, ...],
    judges: tuple[str, ...],
    names: list[str],
    count: int,
    seed: int,
    say: bool = False,
    seconds: float = 1e9,
) -> Tally:
    """Judge ``count`` mutants of each kind and kernel; no kernel begins after ``seconds``."""
    tally = Tally()
    began = time.monotonic()
    for sm in sms:
        for who in sides:
            for name in names:
                if time.monotonic() - began > seconds:
                    print(f"sm_{sm} {who} {name}: left out, time is up")
                    continue
                rng = random.Random(f"{seed} {sm} {who} {name}")
                if name != SPILLING and ("schedule" in judges or "strict" in judges):
                    control_words(tally, name, sm, who, judges, count, rng)
                if "cosim" in judges:
                    computations(tally, name, sm, who, count, rng)
                if say:
                    print(f"sm_{sm} {who} {name}: {sum(tally.made.values())} judged", flush=True)
    if "allocation" in judges:
        allocation(tally, sms, [n for n in names if n != SPILLING], count, seed)
    return tally


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="kill rates of the judges")
    parser.add_argument("--sm", action="append", default=[], help="80, 90, 120 (default: these three)")
    parser.add_argument("--who", choices=("ours", "ptxas", "both"), default="both")
    parser.add_argument("--judge", default=",".join(JUDGES))
    parser.add_argument("--count", type=int, default=3, help="mutants of each kind and kernel")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no kernel after this time")
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("names", nargs="*", help=f"kernels (default: all sixteen, and {SPILLING} for co-simulation)")
    options = parser.parse_args(argv)
    sides = ("ours", "ptxas") if options.who == "both" else (options.who,)
    names = options.names or [*sorted(cases.CASES), SPILLING]
    survivors = 0
    for sm in options.sm or ["80", "90", "120"]:
        for who in sides:
            judges = tuple(
                j for j in options.judge.split(",") if j != "allocation" or who == sides[0]
            )  # (this judge has no side)
            tally = run([sm], (who,), judges, names, options.count, options.seed, options.progress, options.seconds)
            for text in tally.survivors:
                print(f"survives: {text}")
            print(f"sm_{sm} {who}\n{tally.table()}", flush=True)
            survivors += len(tally.survivors)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
