"""Faults planted in stages, and whether `orias-bisect` names the culprit.

    python -m tests.bisect.planted [--each 10] [--seed 1] [--only optimize ...] [--kind undefined ...]

A fault is drawn from the stages by a seed: a pass of a stage's table (or `lower`'s translation, `elf`'s linking), a
kind (wrong value, crash, hang, lost wait; asked for by name, in optimize: a word made undefined before it is read), and
a change of the pass's result, chosen by the same seed among its instructions, control words or bytes. The search knows
nothing of it: the rows of the chain are replaced before it begins, and it works as from the command line. Half of the
changes to results of optional passes count as a rewrite. A change that no long co-simulation, no strict run and no
static judge sees is drawn again."""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import stages.elf.link
from ir_format.flow import read_regs
from ir_format.model import Block, Ctl, Imm, Inst, Reg, Unit
from stages.bisect.bisect import Guilt, Hunt, Unfit
from stages.bisect.command import Request, Source
from stages.plumbing.chain import MIDDLE
from stages.plumbing.runner import Context, Pass

KERNELS: Final = ("vadd", "saxpy", "reduce_sum", "switch10", "scan", "histogram", "local_array", "divrem64")
AREAS: Final = ("optimize", "regalloc", "schedule", "rest")
SMS: Final = ("sm_80", "sm_90", "sm_120")
PTX: Final = Path(__file__).parents[1] / "kernels/ptx"


class Fault:
    """What was planted."""

    def __init__(self, area: str, seed: int, kinds: tuple[str, ...] = ()) -> None:
        self.rng = random.Random(f"{area}{seed}")
        self.seed = seed
        pick = self.rng.choice
        self.stage = pick(("lower", "encode", "elf")) if area == "rest" else area
        self.kernel, self.sm = pick(KERNELS), pick(SMS)
        usual = ["value", "value", "value", "crash", "hang"]
        self.kind = pick(kinds or ([*usual, "wait", "wait", "wait"] if area == "schedule" else usual))
        rows = [s for s in MIDDLE if s.name == self.stage]
        self.names = [p.name for p in rows[0].passes()] if rows else []
        if self.kind == "wait":  # of the passes after which there are control words
            self.names = self.names[[p.required for p in rows[0].passes()].index(True) :]
        self.name = pick(self.names) if self.names else ""
        self.counted = self.rng.random() < 0.5
        self.place = self.rng.random()
        self.way = self.rng.random()

    def __str__(self) -> str:
        where = f"{self.stage}{': ' + self.name if self.name else ''}"
        return f"{self.kind} in {where} ({self.kernel}, {self.sm}, seed {self.seed})"

    def break_down(self) -> None:
        """Crash or hang."""
        if self.kind == "crash":
            [][int(self.place * 10)]
        while self.kind == "hang":
            pass

    def on_unit(self, unit: Unit) -> None:
        """Change the result of a pass."""
        if self.kind in ("crash", "hang"):
            self.break_down()
        elif self.stage == "encode":
            for code in unit.code[:1]:
                data = bytearray(code.data)
                self.flip(data, 0, len(data))
                unit.code[0] = code._replace(data=bytes(data))
        else:
            spoil(unit, self.kind, self.place, self.way)

    def flip(self, data: bytearray, start: int, end: int) -> None:
        """Change a bit of the operands of a word that is no NOP."""
        words = [n for n in range(start, end, 16) if int.from_bytes(data[n : n + 2], "little") & 0xFFF != 0x918]
        at = words[int(self.place * len(words))]
        bit = 16 + int(self.way * 56)
        data[at + bit // 8] ^= 1 << bit % 8


def _spots(unit: Unit, fits: Callable[[Inst], bool]) -> list[tuple[Block, int]]:
    return [(b, n) for f in unit.functions for b in f.blocks for n, i in enumerate(b.insts) if fits(i)]


def spoil(unit: Unit, kind: str, place: float, way: float) -> None:
    """One change to an instruction of the unit, or to its control word."""
    plain = lambda i: i.op not in ("NOP", "BRA", "EXIT", "BSSY", "BSYNC", "PHI", "RET", "CALL", "UNDEF")  # noqa: E731
    if kind == "undefined":
        spots = _spots(unit, lambda i: plain(i) and any(r.file == "R" for r in read_regs(i)))
        if spots:
            b, n = spots[int(place * len(spots))]
            read = [r for r in read_regs(b.insts[n]) if r.file == "R"]
            r = read[int(way * len(read))]._replace(flags=0, mod="")
            b.insts.insert(n, Inst("UNDEF", (), (r,), (), None, b.insts[n].line, -1))
        return
    if kind == "wait":
        spots = _spots(
            unit, lambda i: i.ctl is not None and (i.ctl.wait or i.ctl.stall > 3 or i.ctl.wr < 7) and plain(i)
        )
        if not spots:
            return
        b, n = spots[int(place * len(spots))]
        c = b.insts[n].ctl
        assert c is not None
        b.insts[n].ctl = (
            Ctl(c.stall, c.yield_, c.wr, c.rd, 0) if c.wait else Ctl(1, c.yield_, c.wr, c.rd, c.wait) if c.stall > 3
            else Ctl(c.stall, c.yield_, 7, c.rd, c.wait)
        )  # fmt: skip
        return
    immediate = lambda i: plain(i) and any(isinstance(o, Imm) and not o.sym for o in i.srcs)  # noqa: E731

    def regs(i: Inst) -> list[int]:
        return [n for n, o in enumerate(i.srcs) if isinstance(o, Reg) and o.num >= 0 and o.file == "R"]

    ways = ("immediate", "register", "drop", "guard", "swap")
    what = ways[int(way * len(ways))]
    if what == "immediate" and (spots := _spots(unit, immediate)):
        b, n = spots[int(place * len(spots))]
        i = b.insts[n]
        first = next(k for k, o in enumerate(i.srcs) if isinstance(o, Imm) and not o.sym)
        changed = i.srcs[first]._replace(value=i.srcs[first].value ^ 1)  # type: ignore[union-attr]
        i.srcs = (*i.srcs[:first], changed, *i.srcs[first + 1 :])
    elif what == "drop" and (spots := _spots(unit, lambda i: plain(i) and bool(i.dsts) and i.guard is None)):
        b, n = spots[int(place * len(spots))]
        del b.insts[n]
    elif what == "guard" and (spots := _spots(unit, lambda i: i.guard is not None and i.guard.num >= 0)):
        b, n = spots[int(place * len(spots))]
        g = b.insts[n].guard
        assert g is not None
        b.insts[n].guard = g._replace(flags=g.flags ^ 4)
    elif what == "swap" and (spots := _spots(unit, lambda i: plain(i) and len(set(regs(i))) > 1)):
        b, n = spots[int(place * len(spots))]
        i = b.insts[n]
        x, y = regs(i)[:2]
        srcs = list(i.srcs)
        srcs[x], srcs[y] = srcs[y], srcs[x]
        i.srcs = tuple(srcs)
    elif spots := _spots(unit, lambda i: plain(i) and bool(regs(i))):
        insts = [i for f in unit.functions for b in f.blocks for i in b.insts]
        held = [o for i in insts for o in (*i.srcs, *i.dsts) if isinstance(o, Reg) and o.file == "R" and o.num >= 0]
        others = sorted({(o.num, o.width) for o in held})
        b, n = spots[int(place * len(spots))]
        i = b.insts[n]
        at = regs(i)[0]
        old = i.srcs[at]
        assert isinstance(old, Reg)
        same = [num for num, width in others if width == old.width and num != old.num] or [old.num]
        i.srcs = tuple(
            [old._replace(num=same[int(way * 1000) % len(same)]) if k == at else o for k, o in enumerate(i.srcs)]
        )


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """While active the chain has the fault."""
    row = next((s for s in MIDDLE if s.name == fault.stage), None)
    if row is None:
        link: Any = stages.elf.link.link

        def wrong_link(*args: Any) -> bytes:
            data = bytearray(link(*args))
            fault.break_down()
            from stages.disasm.cubin import read_cubin

            section = read_cubin(bytes(data)).sections[0]
            fault.flip(data, section.offset, section.offset + len(section.data))
            return bytes(data)

        stages.elf.link.link = wrong_link
        try:
            yield
        finally:
            stages.elf.link.link = link
        return
    begin, passes = row.begin, row.passes
    if begin is not None:
        object.__setattr__(row, "begin", lambda: lambda source, ctx: _after(begin()(source, ctx), fault))
    else:
        table = [
            Pass(p.name, _spoiled(p, fault), p.min_opt, p.required) if p.name == fault.name else p for p in passes()
        ]
        object.__setattr__(row, "passes", lambda: table)
    try:
        yield
    finally:
        object.__setattr__(row, "begin", begin)
        object.__setattr__(row, "passes", passes)


def _after(unit: Unit, fault: Fault) -> Unit:
    fault.on_unit(unit)
    return unit


def _spoiled(p: Pass, fault: Fault) -> Callable[[Unit, Context], object]:
    def run(unit: Unit, ctx: Context) -> None:
        p.run(unit, ctx)
        if p.required or not fault.counted or ctx.allow():
            fault.on_unit(unit)

    return run


class Result:
    """How a search ended."""

    def __init__(self, fault: Fault, guilt: Guilt | None, why: str, seconds: float) -> None:
        self.fault, self.guilt, self.why, self.seconds = fault, guilt, why, seconds
        self.stage = guilt is not None and guilt.stage == fault.stage
        self.name = self.stage and guilt is not None and (guilt.name == fault.name or not fault.names)

    def __str__(self) -> str:
        g = self.guilt
        said = (
            f"{g.stage}: {g.name}{f', rewrite {g.rewrite}' if g.rewrite else ''} by {g.judge}: {g.said}"
            if g is not None
            else self.why
        )
        mark = "ok  " if self.name else "pass" if self.stage else "BAD "
        return f"{mark} {self.seconds:5.1f} s  {self.fault}: {said[:150]}"


def hunt(fault: Fault, say: Callable[[str], object] = lambda text: None) -> Result:
    """Search for a fault as the command line does."""
    began = processor_seconds()
    file = PTX / fault.sm / f"{fault.kernel}.ptx"
    try:
        with planted(fault):
            source = Source(Request(file, ["-arch", fault.sm]), say)
            guilt = Hunt(source.chain(), source.judge(), say, source.narrow()).run()
            same = reproduces(source, guilt)
        result = Result(fault, guilt, "", processor_seconds() - began)
        if not same:
            result.name = result.stage = False
            result.why, result.guilt = "the printed commands do not reproduce", None
        return result
    except Unfit as e:
        return Result(fault, None, str(e), processor_seconds() - began)


def reproduces(source: Source, guilt: Guilt) -> bool:
    """Whether the printed settings, read as `orias` reads them, give the cubins that the search saw."""
    from orchestrator.api import ChainError, compile_sources
    from orchestrator.driver import Run
    from orchestrator.options import read
    from stages.bisect.report import words_of

    if guilt.judge.startswith("whether"):  # no cubin
        return True
    chain = source.chain()
    for setting in (guilt.right, guilt.wrong):
        if setting is None:
            continue
        run = Run(read([*source.words, *words_of(setting), str(source.request.file)]))
        try:
            cubin = compile_sources([(str(source.request.file), source.data)], run.target, dict(run.options), run.flags)
        except ChainError:
            cubin = b""
        if cubin != chain.make(setting).cubin:
            return False
    return True


def seen(fault: Fault) -> bool:
    """Whether a long co-simulation sees a fault that was not found."""
    from orchestrator.api import compile_ptx
    from stages.check.cosim import Cosim
    from stages.simulate import Device

    text = (PTX / fault.sm / f"{fault.kernel}.ptx").read_text()
    clean = compile_ptx(text, fault.sm, {"fmad": 0})
    with planted(fault):
        wrong = compile_ptx(text, fault.sm, {"fmad": 0})
    if clean == wrong:
        return False
    return bool(Cosim(text, fault.sm, {"ours": Device(wrong)}, seconds=20.0).run().differences())


def processor_seconds() -> float:
    """Processor seconds of this process and its children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def campaign(
    each: int, seed: int, areas: list[str], say: Callable[[str], object], kinds: tuple[str, ...] = ()
) -> list[Result]:
    """So many faults of each area."""
    out: list[Result] = []
    for area in areas:
        done, at = 0, seed * 1000
        while done < each:
            at += 1
            result = hunt(Fault(area, at, kinds))
            if result.guilt is None and not result.why.startswith("the printed") and not seen(result.fault):
                continue
            done += 1
            out.append(result)
            say(str(result))
    return out


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(AREAS))
    parser.add_argument("--kind", nargs="*", default=[], help="kinds of faults: value crash hang wait undefined")
    parser.add_argument("--one", nargs=2, metavar=("AREA", "SEED"))
    args = parser.parse_args()
    if args.one:
        print(hunt(Fault(args.one[0], int(args.one[1]), tuple(args.kind)), print))
        return
    began = time.time()
    results = campaign(args.each, args.seed, args.only, lambda text: print(text, flush=True), tuple(args.kind))
    stage, name = sum(r.stage for r in results), sum(r.name for r in results)
    longest, took = max(r.seconds for r in results), time.time() - began
    print(f"{len(results)} faults: right stage {stage}, right pass {name}, longest {longest:.0f} s of processor time")
    print(f"{took:.0f} s in all")


if __name__ == "__main__":
    main()
