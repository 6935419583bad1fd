"""How tight the scheduler's code is: static issue cycles (sums of stall counts) of ours against ptxas's.

    python -m benchmarks.schedule_quality [--sm 80,90,120] [--blocks]

``same``: ptxas's own instructions and registers, block by block, rescheduled by our passes: the scheduler alone.
``chain``: our whole chain's kernel against ptxas's: selection and allocation count too. ``waits`` counts instructions
that wait for a scoreboard. The code does not show how long they wait; ``with waits`` estimates it from typical
latencies, for one warp alone. Padding after the last instruction is left out on both sides; each block counts once,
in loops or not.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ir_format import isa
from ir_format.flow import is_terminator
from ir_format.hazards import hazards
from ir_format.model import Block, Function, Header, Imm, Inst, Unit, label
from stages.plumbing.runner import Context, Flags
from stages.schedule.schedule_unit import control_unit, order_unit
from tests import oracle
from tests.kernels import cases

Cycles = tuple[int, int, int, int]  # instructions, issue cycles, instructions that wait, cycles with waiting (estimate)


def code_of(cubin: Path) -> dict[str, list[int]]:
    """Instruction words by section name."""
    with open(cubin, "rb") as f:
        sections = [(s.name, s.data()) for s in ELFFile(f).iter_sections() if s.name.startswith(".text.")]
    return {name: [int.from_bytes(d[i : i + 16], "little") for i in range(0, len(d), 16)] for name, d in sections}


def lift(words: list[int], sm: int) -> Function | None:
    """A function with blocks from machine code, without padding; None if an instruction is not known."""
    t = isa.target(sm)
    insts: list[Inst] = []
    for n, word in enumerate(words):
        inst = t.decode(word, n * 16)
        if not isinstance(inst, Inst):
            return None
        insts.append(inst)
    end = len(insts)
    while end and insts[end - 1].op == "NOP":
        end -= 1
    if (
        end
        and insts[end - 1].op == "BRA"
        and any(type(o) is Imm and o.value == (end - 1) * 16 for o in insts[end - 1].srcs)
    ):
        end -= 1
    leaders = {0}
    for n, inst in enumerate(insts[:end]):
        if is_terminator(inst):
            leaders.add(n + 1)
        if inst.op in ("BRA", "BSSY", "CALL"):
            leaders.update(o.value // 16 for o in inst.srcs if type(o) is Imm)
    f = Function("f")
    for n in range(end):
        if n in leaders or not f.blocks:
            f.blocks.append(Block(n))
        inst = insts[n]
        if inst.op == "BRA":
            inst.srcs = tuple(label(o.value // 16) if type(o) is Imm else o for o in inst.srcs)
        f.blocks[-1].insts.append(inst)
    known = {b.id for b in f.blocks}
    for b in f.blocks:
        for o in b.insts[-1].srcs if b.insts[-1].op == "BRA" else ():
            if o[0] == "L" and o[1] not in known:
                return None
    return f


def count(blocks: list[Block], sm: int) -> Cycles:
    """Figures of scheduled blocks."""
    insts = [i for b in blocks for i in b.insts]
    stalls = sum(max(i.ctl.stall, 1) for i in insts if i.ctl)
    return len(insts), stalls, sum(1 for i in insts if i.ctl and i.ctl.wait), sum(estimate(b, sm) for b in blocks)


def estimate(block: Block, sm: int) -> int:
    """Cycles of one execution of a block by one warp alone, with typical latencies for the class of each result."""
    tables = hazards(sm)
    free = [0] * 6
    now = 0
    for inst in block.insts:
        c = inst.ctl
        assert c is not None
        a = tables.access(inst)
        now = max([now, *(free[k] for k in range(6) if c.wait >> k & 1)])
        if c.wr < 6:
            free[c.wr] = max(free[c.wr], now + a.latency)
        if c.rd < 6:
            free[c.rd] = max(free[c.rd], now + 16)
        now += max(c.stall, 1)
    return now


def reschedule(f: Function, sm: int) -> None:
    """Our passes over ptxas's instructions, after its filler NOPs are removed."""
    for b in f.blocks:
        b.insts = [i for i in b.insts if i.op != "NOP" or (i.ctl is not None and i.ctl.wait)]
    unit = Unit("f")
    unit.functions = [f]
    ctx = Context(Header("scheduled", f"sm_{sm}"), None, Flags())
    order_unit(unit, ctx)
    control_unit(unit, ctx)


def compile_ours(ptx: Path, sm: int, out: Path) -> bool:
    """Our cubin."""
    command = [sys.executable, "-m", "orchestrator", str(ptx), "-arch", f"sm_{sm}", "-o", str(out)]
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sm", default="80,90,120")
    parser.add_argument("--same", action="store_true", help="leave our chain out")
    parser.add_argument("--blocks", action="store_true", help="print the worst blocks too")
    args = parser.parse_args()
    for sm in map(int, args.sm.split(",")):
        same: list[float] = []
        waited: list[float] = []
        chain: list[float] = []
        worst: list[tuple[float, str]] = []
        for name, spec in cases.CASES.items():
            ptx = spec.ptx(sm)
            theirs = oracle.run_ptxas(ptx, str(sm))
            if isinstance(theirs, oracle.ToolError):
                continue
            before = after = (0, 0, 0, 0)
            for words in code_of(theirs).values():
                f, g = lift(words, sm), lift(words, sm)
                if f is None or g is None:
                    continue
                reschedule(g, sm)
                before = tuple(map(sum, zip(before, count(f.blocks, sm))))  # type: ignore[assignment]
                after = tuple(map(sum, zip(after, count(g.blocks, sm))))  # type: ignore[assignment]
                for a, b in zip(f.blocks, g.blocks):
                    old, new = estimate(a, sm), estimate(b, sm)
                    worst.append(
                        (
                            new - old,
                            f"{name} block at {a.id * 16:#x}: {new} cycles, ptxas {old}, {len(a.insts)} instructions",
                        )
                    )
            line = (
                f"sm_{sm} {name:14} same: ptxas {before[1]:5} cycles {before[2]:4} waits, ours {after[1]:5} "
                f"{after[2]:4}"
            )
            if before[1]:
                same.append(after[1] / before[1])
                waited.append(after[3] / before[3])
                line += f" = {same[-1]:.2f}, with waits {before[3]:5} {after[3]:5} = {waited[-1]:.2f}"
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "k.cubin"
                if not args.same and compile_ours(ptx, sm, out):
                    own = [g for w in code_of(out).values() if (g := lift(w, sm)) is not None]
                    ours = count([b for g in own for b in g.blocks], sm)
                    if own and before[1]:
                        chain.append(ours[1] / before[1])
                        line += (
                            f"   chain: {ours[0]} instructions (ptxas {before[0]}), {ours[1]} cycles = {chain[-1]:.2f}"
                        )
            print(line, flush=True)
        for title, ratios in (("same code", same), ("same code with waits", waited), ("whole chain", chain)):
            if ratios:
                print(
                    f"sm_{sm} {title}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} of "
                    f"ptxas over {len(ratios)} kernels"
                )
        if args.blocks:
            for _, text in sorted(worst, reverse=True)[:12]:
                print("   ", text)


if __name__ == "__main__":
    main()
