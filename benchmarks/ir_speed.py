"""Cost of one stage boundary: pack, unpack and validate, in microseconds per instruction; and a liveness pass.

python -m benchmarks.ir_speed [--size 100000]
"""

from __future__ import annotations

import argparse
import gc
import io
import time

from ir_format import wire
from ir_format.flow import build_cfg, liveness
from ir_format.model import NOT_PT, PT, RZ, Block, Function, Header, Inst, Label, Reg, Unit


def make_unit(size: int) -> Unit:
    """A unit of ``size`` integer instructions in blocks of a hundred, with branches back and values that are live
    across blocks."""
    f = Function("k")
    regs = [f.new_vreg("R", 2 if n % 3 == 0 else 1) for n in range(2000)]
    for b in range(max(1, size // 100)):
        block = Block(b)
        for n in range(b * 100, b * 100 + 99):
            d, x, y = (regs[k % 2000]._replace(width=1) for k in (n, n * 7 + 1, n * 13 + 5))
            block.insts.append(Inst("IADD3", ("X",), (d, PT, PT), (x, y, RZ, PT, NOT_PT), None, n + 1))
        block.insts.append(Inst("BRA", (), (), (PT, Label("L", max(0, b - 3))), Reg("P", f.new_vreg("P").num)))
        f.blocks.append(block)
    f.blocks.append(Block(size, [Inst("EXIT", (), (), (PT,))]))
    u = Unit("k")
    u.functions = [f]
    return u


def main() -> None:
    """Measure and print."""
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=100_000)
    size = ap.parse_args().size
    unit = make_unit(size)
    gc.disable()  # as in the stages
    t0 = time.perf_counter()
    out = io.BytesIO()
    w = wire.Writer(out.write)
    w.record(wire.MAGIC, wire.header_to_wire(Header("ori", "sm_90")))
    w.record("unit", wire.unit_to_wire(unit))
    w.end()
    t1 = time.perf_counter()
    records = list(wire.records(io.BytesIO(out.getvalue())))
    t2 = time.perf_counter()
    back = wire.unit_from_wire(records[1][1], "ori")
    t3 = time.perf_counter()
    assert back.functions == unit.functions
    pack, unpack, check = ((b - a) / size * 1e6 for a, b in ((t0, t1), (t1, t2), (t2, t3)))
    print(f"{size} instructions, {len(out.getvalue()) / size:.0f} bytes each")
    print(
        f"boundary: pack {pack:.2f} + unpack {unpack:.2f} + validate {check:.2f} = {pack + unpack + check:.2f} us an "
        f"instruction (bar 10)"
    )
    t = time.perf_counter()
    liveness(back.functions[0], build_cfg(back.functions[0]))
    print(f"liveness: {time.perf_counter() - t:.2f} s (bar 1)")


if __name__ == "__main__":
    main()
