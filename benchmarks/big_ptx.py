"""A large generated module: matrix products over shared memory, as template libraries unroll them.

    python -m benchmarks.big_ptx > big.ptx          # 11 kernels, about 20,000 lines

Each kernel keeps a 64x64 tile of a warp in 128 accumulators, copies with cp.async, loads fragments by ldmatrix,
multiplies with mma.sync, and scales, adds and stores the tile under a guard for each pair of elements. It is only
compiled, never run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

ROWS, COLS = 4, 8  # tiles of 16x8 in a warp's part
TILE = 4 * ROWS * COLS  # accumulators
STEPS = 4  # k steps unrolled in the loop


def _prologue(name: str, arch: str) -> Iterator[str]:
    yield (
        f".visible .entry {name}(.param .u64 {name}_a, .param .u64 {name}_b, .param .u64 {name}_c, .param .u64 "
        f"{name}_d,"
    )
    yield (
        f"  .param .u32 {name}_m, .param .u32 {name}_n, .param .u32 {name}_k, .param .f32 {name}_alpha, .param "
        f".f32 {name}_beta)"
    )
    yield "{"
    yield ".reg .pred %p<2000>; .reg .b16 %h<2000>; .reg .b32 %r<20000>; .reg .f32 %f<12000>; .reg .b64 %rd<20000>;"
    yield f".shared .align 16 .b8 {name}_tiles[49152];"
    for i, p in enumerate("abcd"):
        yield f"ld.param.u64 %rd{i}, [{name}_{p}]; cvta.to.global.u64 %rd{i + 4}, %rd{i};"
    for i, p in enumerate("mnk"):
        yield f"ld.param.u32 %r{i}, [{name}_{p}];"
    for i, p in enumerate(("alpha", "beta")):
        yield f"ld.param.f32 %f{i}, [{name}_{p}];"
    yield f"mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, {name}_tiles;"
    yield "and.b32 %r7, %r3, 31; shr.u32 %r8, %r3, 5; and.b32 %r9, %r8, 1; shr.u32 %r10, %r8, 1;"
    yield "shl.b32 %r11, %r4, 7; shl.b32 %r12, %r5, 7; mad.lo.s32 %r13, %r9, 64, %r11; mad.lo.s32 %r14, %r10, 64, %r12;"
    yield "shl.b32 %r15, %r7, 4; xor.b32 %r16, %r15, %r8; add.s32 %r17, %r6, %r16; add.s32 %r18, %r17, 24576;"
    yield "shl.b32 %r19, %r3, 4; add.s32 %r20, %r6, %r19;"
    for i in range(16):  # addresses of the copies
        yield (
            f"shr.u32 %r{30 + i}, %r3, 3; add.s32 %r{50 + i}, %r{30 + i}, {i * 8}; mul.wide.s32 %rd{20 + i}, "
            f"%r{50 + i}, %r2;"
        )
        yield (
            f"shl.b64 %rd{40 + i}, %rd{20 + i}, 1; add.s64 %rd{60 + i}, %rd{4 if i < 8 else 5}, %rd{40 + i}; "
            f"setp.lt.s32 %p{i}, %r{50 + i}, %r{0 if i < 8 else 1};"
        )
        yield f"selp.b32 %r{70 + i}, 16, 0, %p{i};"
    for i in range(TILE):
        yield f"mov.f32 %f{100 + i}, 0f00000000;"
    yield "mov.u32 %r100, 0;"


def _loop(shift: int) -> Iterator[str]:
    yield "LOOP:"
    for i in range(16):
        yield f"cp.async.cg.shared.global [%r20+{i * 1536}], [%rd{60 + i}], 16, %r{70 + i};"
    yield "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"
    at, acc = 200, 100
    for step in range(STEPS):
        place = (step * 1056 + shift * 16) % 22528 // 16 * 16
        for i in range(ROWS):
            regs = ", ".join(f"%r{at + 4 * i + j}" for j in range(4))
            yield f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{regs}}}, [%r17+{place + i * 512}];"
        for i in range(COLS // 2):
            regs = ", ".join(f"%r{at + 16 + 4 * i + j}" for j in range(4))
            yield f"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{regs}}}, [%r18+{place + i * 512}];"
        for i in range(ROWS):
            for j in range(COLS):
                old, new = (
                    ", ".join(f"%f{base + 4 * (i * COLS + j) + e}" for e in range(4)) for base in (acc, acc + TILE)
                )
                a = ", ".join(f"%r{at + 4 * i + e}" for e in range(4))
                b = ", ".join(f"%r{at + 16 + 2 * j + e}" for e in range(2))
                yield f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{new}}}, {{{a}}}, {{{b}}}, {{{old}}};"
        at, acc = at + 32, acc + TILE
    for i in range(16):
        yield f"add.s64 %rd{60 + i}, %rd{60 + i}, 128;"
    yield "bar.sync 0;"
    for i in range(TILE):
        yield f"mov.f32 %f{100 + i}, %f{acc + i};"
    yield "add.s32 %r100, %r100, 64; setp.lt.s32 %p100, %r100, %r2;"
    yield "@%p100 bra LOOP;"


def _epilogue(out: str) -> Iterator[str]:
    yield "shr.u32 %r110, %r7, 2; and.b32 %r111, %r7, 3; shl.b32 %r112, %r111, 1;"
    at, q = 4000, 2000
    for i in range(ROWS * 2):
        yield (
            f"add.s32 %r{at}, %r13, {i * 8}; add.s32 %r{at + 1}, %r{at}, %r110; setp.lt.s32 %p{200 + i}, "
            f"%r{at + 1}, %r0;"
        )
        yield f"mul.wide.s32 %rd{q}, %r{at + 1}, %r1;"
        row, base, at, q = at + 1, q, at + 2, q + 1
        for j in range(COLS):
            acc = 100 + 4 * ((i // 2) * COLS + j) + 2 * (i % 2)
            p, f, h = 300 + 8 * i + j, 10000 + 8 * (8 * i + j), 2 * (8 * i + j)
            yield (
                f"add.s32 %r{at}, %r14, {j * 8}; add.s32 %r{at + 1}, %r{at}, %r112; setp.lt.s32 %p{p}, %r{at + 1}, %r1;"
            )
            yield f"and.pred %p{p + 100}, %p{p}, %p{200 + i};"
            yield f"cvt.s64.s32 %rd{q}, %r{at + 1}; add.s64 %rd{q + 1}, %rd{q}, %rd{base};"
            yield (
                f"shl.b64 %rd{q + 2}, %rd{q + 1}, {2 if out == 'f32' else 1}; add.s64 %rd{q + 3}, %rd6, "
                f"%rd{q + 2}; add.s64 %rd{q + 4}, %rd7, %rd{q + 2};"
            )
            yield f"mul.f32 %f{f}, %f{acc}, %f0; mul.f32 %f{f + 1}, %f{acc + 1}, %f0;"
            if out == "f32":
                yield f"mov.f32 %f{f + 2}, 0f00000000; mov.f32 %f{f + 3}, 0f00000000;"
                yield f"@%p{p + 100} ld.global.v2.f32 {{%f{f + 2}, %f{f + 3}}}, [%rd{q + 3}];"
            else:
                yield f"mov.b32 %r{at + 2}, 0;"
                yield f"@%p{p + 100} ld.global.b32 %r{at + 2}, [%rd{q + 3}];"
                yield (
                    f"mov.b32 {{%h{h}, %h{h + 1}}}, %r{at + 2}; cvt.f32.f16 %f{f + 2}, %h{h}; cvt.f32.f16 "
                    f"%f{f + 3}, %h{h + 1};"
                )
            yield f"fma.rn.f32 %f{f + 4}, %f{f + 2}, %f1, %f{f}; fma.rn.f32 %f{f + 5}, %f{f + 3}, %f1, %f{f + 1};"
            if out == "f32":
                yield f"@%p{p + 100} st.global.v2.f32 [%rd{q + 4}], {{%f{f + 4}, %f{f + 5}}};"
            else:
                yield f"cvt.rn.f16x2.f32 %r{at + 3}, %f{f + 5}, %f{f + 4};"
                yield f"@%p{p + 100} st.global.b32 [%rd{q + 4}], %r{at + 3};"
            at, q = at + 4, q + 5
        assert row
    yield "ret;"
    yield "}"


def big_ptx(arch: str = "sm_80", kernels: int = 11) -> str:
    """PTX text of the module, one statement per line, as compilers print it."""
    lines = [".version 8.0", f".target {arch}", ".address_size 64"]
    for n in range(kernels):
        for part in (_prologue(f"product{n}", arch), _loop(n), _epilogue("f32" if n % 2 else "f16")):
            for line in part:
                if line.startswith((".", "  ")) and "entry" in line or line.startswith("  "):
                    lines.append(line)
                else:
                    lines += [s.strip() + ";" for s in line.split(";") if s.strip()] if ";" in line else [line]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(big_ptx(sys.argv[1] if len(sys.argv) > 1 else "sm_80"))
