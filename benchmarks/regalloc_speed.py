"""Speed of liveness and of register allocation: ``python -m benchmarks.regalloc_speed [instructions]``.

Generated units of nested loops and branches with about fifty live values. Prints seconds and microseconds per
instruction; the last line is liveness over 100,000 instructions, whose bar is one second.
"""

from __future__ import annotations

import random
import sys
import time

from ir_format.flow import build_cfg, liveness
from ir_format.model import NOT_PT, PT, RZ, Block, Function, Header, Inst, Unit, cbank, imm, label
from stages.regalloc.allocate import allocate_unit
from stages.regalloc.checker.checker import check_allocation


def make(count: int, live: int = 40, seed: int = 1) -> Unit:
    """A kernel of about ``count`` instructions."""
    rnd = random.Random(seed)
    fn = Function("bench")
    r1 = fn.new_vreg("R", fixed=1)
    first = Block(0)
    fn.blocks.append(first)
    first.insts.append(Inst("MOV", (), (r1,), (cbank(0, 0x28),)))
    first.insts.append(Inst("IADD3", (), (r1, PT, PT), (r1, imm(0), RZ, NOT_PT, NOT_PT), attrs={"frame": -1}))
    values = [fn.new_vreg("R") for _ in range(live)]
    for value in values:
        first.insts.append(Inst("LDS", (), (value,), (imm(0),)))

    def block() -> Block:
        made = Block(len(fn.blocks))
        fn.blocks.append(made)
        for _ in range(20):
            fresh = fn.new_vreg("R") if rnd.random() < 0.8 else rnd.choice(values)
            made.insts.append(
                Inst("IADD3", (), (fresh, PT, PT), (rnd.choice(values), rnd.choice(values), RZ, NOT_PT, NOT_PT))
            )
            if rnd.random() < 0.2:
                values[rnd.randrange(live)] = fresh
        return made

    def branch(at: Block, to: int) -> None:
        p = fn.new_vreg("P")
        at.insts.append(Inst("ISETP", ("LT", "AND"), (p, PT), (rnd.choice(values), imm(3), PT)))
        at.insts.append(Inst("BRA", (), (), (label(to),), p))

    while sum(20 for _ in fn.blocks) < count:
        if rnd.random() < 0.4:
            a = block()
            block()
            branch(a, a.id + 2)
        else:
            head = block()
            block()
            middle = block()
            last = block()
            branch(middle, last.id)
            branch(last, head.id)
    end = block()
    for value in values:
        end.insts.append(Inst("STS", (), (), (imm(0), value)))
    end.insts.append(Inst("EXIT"))
    unit = Unit("bench")
    unit.functions = [fn]
    return unit


def size(unit: Unit) -> int:
    """Instructions of a unit."""
    return sum(len(b.insts) for f in unit.functions for b in f.blocks)


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{'what':40} {'insts':>8} {'seconds':>8} {'us/inst':>8}")
    for limit, name in (
        (255, "allocate, no limit"),
        (40, "allocate, 40 registers"),
        (24, "allocate, 24 registers"),
        (0, "allocate, naive"),
    ):
        unit, before = make(count), make(count)
        n = size(unit)
        start = time.perf_counter()
        allocate_unit(unit, Header("ori", "sm_90"), {"allocator": "" if limit else "naive"}, limit=limit or 255)
        spent = time.perf_counter() - start
        fn = unit.functions[0]
        print(
            f"{name:40} {n:8} {spent:8.2f} {spent / n * 1e6:8.1f}  R {fn.regs['R']}, spilled bytes {fn.spills[0]} / "
            f"{fn.spills[1]}"
        )
        start = time.perf_counter()
        findings = check_allocation(before, unit)
        spent = time.perf_counter() - start
        print(f"{'  its check':40} {n:8} {spent:8.2f} {spent / n * 1e6:8.1f}  findings {len(findings)}")
    unit = make(100_000)
    fn = unit.functions[0]
    start = time.perf_counter()
    liveness(fn, build_cfg(fn))
    spent = time.perf_counter() - start
    print(f"{'liveness':40} {size(unit):8} {spent:8.2f} {spent / size(unit) * 1e6:8.1f}")


if __name__ == "__main__":
    main()
