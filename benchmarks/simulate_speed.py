"""Speed of the simulator: warp instructions per second of ptxas's cubins of the 16 kernels, plain and strict, and their
ratio.

    python -m benchmarks.simulate_speed [--sm 90] [--kernels matmul,softmax]

``ALU``: 20,000 multiply-adds and exclusive ors per thread without memory, to which the plain mode's bar applies.
``matmul 256``: 64 blocks of 256 threads, 256 x 256, in seconds. Seconds are processor time; each launch compiles its
closures, which is most of the time of the small ones.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import numpy as np

from stages.simulate import Device
from tests import oracle
from tests.kernels import cases
from tests.kernels.model import Buffer, Launch
from tests.kernels.run import compile_ptxas, prepare, ptx_for

ALU = """
.version 8.8
.target sm_{sm}
.address_size 64
.visible .entry alu(.param .u64 out)
{{
    .reg .b32 %r<9>;
    .reg .b64 %d<4>;
    .reg .pred %p;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, 1;
    mov.u32 %r2, 0;
    mov.u32 %r4, %ntid.x;
loop:
    .pragma "nounroll";
{body}
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, 1000;
    @%p bra loop;
    mov.u32 %r5, %ctaid.x;
    mad.lo.u32 %r5, %r5, %r4, %r0;
    mul.wide.u32 %d1, %r5, 4;
    add.u64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r1;
    ret;
}}
"""
MATMUL = """
.version 8.8
.target sm_{sm}
.address_size 64
.visible .entry matmul256(.param .u64 pa, .param .u64 pb, .param .u64 pc)
{{
    .reg .b32 %r<12>;
    .reg .b64 %d<12>;
    .reg .f32 %f<5>;
    .reg .pred %p;
    ld.param.u64 %d0, [pa];
    ld.param.u64 %d1, [pb];
    ld.param.u64 %d2, [pc];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    shl.b32 %r2, %r1, 2;        // four rows of C a block, four columns a thread
    mov.f32 %f0, 0f00000000;
    mov.u32 %r9, 0;
row:
    add.u32 %r3, %r2, %r9;
    mul.wide.u32 %d3, %r3, 1024;
    add.u64 %d4, %d0, %d3;
    mul.wide.u32 %d5, %r0, 4;
    add.u64 %d6, %d1, %d5;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r4, 0;
inner:
    .pragma "nounroll";
    ld.global.f32 %f2, [%d4];
    ld.global.f32 %f3, [%d6];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.u64 %d4, %d4, 4;
    add.u64 %d6, %d6, 1024;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p, %r4, 256;
    @%p bra inner;
    add.u64 %d7, %d2, %d3;
    add.u64 %d8, %d7, %d5;
    st.global.f32 [%d8], %f1;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p, %r9, 4;
    @%p bra row;
    ret;
}}
"""


def measure(device: Device, launch: Launch, strict: bool) -> tuple[float, int]:
    """Processor seconds and warp instructions of one launch."""
    _, args = prepare(device, launch)
    start = time.process_time()
    stats = device.launch(launch.entry, launch.grid, launch.block, args, shared=launch.shared, strict=strict, seed=3)
    return time.process_time() - start, stats.instructions


def rates(device: Device, launches: list[Launch]) -> tuple[float, float]:
    """Warp instructions per second, plain and strict: the best of four runs, taken in turns."""
    best = {False: math.inf, True: math.inf}
    total = 0
    for _ in range(4):
        for strict in best:
            runs = [measure(device, launch, strict) for launch in launches]
            best[strict] = min(best[strict], sum(s for s, _ in runs))
            total = sum(n for _, n in runs)
    return total / best[False], total / best[True]


def compiled(ptx: str, sm: str) -> Device:
    """A device with ptxas's cubin of a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(ptx)
        got = compile_ptxas(path, sm, [])
    if not isinstance(got, bytes):
        raise SystemExit(f"ptxas: {got}")
    return Device(got)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sm", default="90")
    parser.add_argument("--kernels", default="")
    options = parser.parse_args()
    oracle.require("ptxas")
    names = [n for n in options.kernels.split(",") if n] or sorted(cases.CASES)
    print(f"{'kernel':14} {'plain/s':>12} {'strict/s':>12} {'ratio':>6}")
    ratios = []
    for name in names:
        spec = cases.CASES[name]
        plain, strict = rates(compiled(ptx_for(spec, options.sm).read_text(), options.sm), spec.launches(0))
        ratios.append(plain / strict)
        print(f"{name:14} {plain:12,.0f} {strict:12,.0f} {plain / strict:6.2f}", flush=True)
    body = "\n".join(["    mad.lo.u32 %r1, %r1, %r0, %r2;", "    xor.b32 %r1, %r1, %r4;"] * 10)
    square = np.ones((256, 256), np.float32)
    words = np.zeros(64 * 256, np.uint32)
    large = [
        (
            "ALU",
            ALU.format(sm=options.sm, body=body),
            Launch("alu", "alu", (64, 1, 1), (256, 1, 1), 0, [Buffer("out", words)]),
        ),
        (
            "matmul 256",
            MATMUL.format(sm=options.sm),
            Launch("matmul256", "", (64, 1, 1), (256, 1, 1), 0, [Buffer(k, square) for k in "abc"]),
        ),
    ]
    for name, ptx, launch in large:
        plain, strict = rates(compiled(ptx, options.sm), [launch])
        ratios.append(plain / strict)
        print(f"{name:14} {plain:12,.0f} {strict:12,.0f} {plain / strict:6.2f}", flush=True)
        seconds, n = measure(compiled(ptx, options.sm), launch, False)
    print(f"ratio: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, worst {max(ratios):.2f}")
    print(f"matmul 256: {seconds:.1f} s plain for {n:,} warp instructions")


if __name__ == "__main__":
    main()
