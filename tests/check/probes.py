"""Small kernels for which ptxas's control words show what is enough. Each covers a kind of instructions that the
schedule checker once reported wrongly.

``KINDS``: name -> (least SM, body). Parameters a (a pointer), c, d (numbers) are in %rd1, %r2, %r3; %r1 is the thread's
number, s 1 KiB of shared memory.
"""

from __future__ import annotations

from typing import Final

_AFTER: Final = "st.global.u32 [%rd1+16],%r4; st.global.u32 [%rd1+20],%r5; st.global.u32 [%rd1+24],%r6;"
KINDS: Final = {
    # the CCTL of an acquire waits for its own load
    "acquire": (75,
    f"ld.global.u32 %r4,[%rd1]; ld.acquire.gpu.global.u32 %r5,[%rd1+4]; ld.global.u32 %r6,[%rd1+8]; {_AFTER}"),
    "acquire_relaxed": (75,
        "ld.relaxed.gpu.global.u32 %r4,[%rd1]; ld.acquire.gpu.global.u32 %r5,[%rd1+4]; ld.global.u32 %r6,[%rd1+8]; "
        f"{_AFTER}"),
    "acquire_atomic": (75,
    f"ld.global.u32 %r4,[%rd1]; atom.acquire.gpu.global.add.u32 %r5,[%rd1+4],3; ld.global.u32 %r6,[%rd1+8]; {_AFTER}"),
    "fence": (75, f"ld.global.u32 %r4,[%rd1]; fence.acq_rel.gpu; ld.global.u32 %r5,[%rd1+4]; mov.u32 %r6,0; {_AFTER}"),
    # accesses after operations on barrier objects
    "init_store": (90, "mbarrier.init.shared.b64 [s+512],4; st.shared.u32 [s+512],%r1;"),
    "init_load": (90, "mbarrier.init.shared.b64 [%r3],4; ld.shared.u32 %r4,[%r2]; st.global.u32 [%rd1+16],%r4;"),
    "arrive_store": (90,
    "mbarrier.arrive.shared.b64 %rd2,[s+512]; st.shared.u32 [s+64],%r1; st.global.u64 [%rd1+16],%rd2;"),
    # stores before barriers
    "store_barrier": (75, """mov.u32 %r4,%tid.y; mov.u32 %r5,%tid.z;
L: st.shared.v2.u32 [%r2],{%r4,%r5}; st.global.u32 [%rd1],%r4; barrier.sync 0; add.u32 %r4,%r4,4; xor.b32 %r5,%r5,%r4; \
sub.u32 %r3,%r3,1; setp.ne.u32 %p1,%r3,0; @%p1 bra L;
st.global.u32 [%rd1+8],%r5;"""),
    # FP64 over a register read one cycle before
    "double": (80,
        "ld.global.f64 %d1,[%rd1]; mov.b64 %rd2,%d1; setp.eq.s64 %p1,%rd2,-9223372036854775808; neg.f64 %d2,%d1; "
        "@%p1 add.f64 %d1,%d2,%d1; st.global.f64 [%rd1+8],%d1;"),
    # many predicates saved in a register: P2R and R2P with masks
    "masks": (75,
    " ".join(f"setp.gt.u32 %p{k},%r2,{k};" for k in range(1,
    10)) + " bar.sync 0; " + " ".join(f"@%p{k} red.global.add.u32 [%rd1+{4 * k}],%r{k % 3 + 1};" for k in range(1,
    10))),
    # R2P of bits and what selects by them; a product in double precision over one in flight, under a predicate
    "bits": (75, "mov.u32 %r6,%r1; " +
        " ".join(f"and.b32 %r4,%r2,{1 << k}; setp.eq.s32 %p{k + 1},%r4,0; selp.b32 %r5,0,{5 << k},%p{k + 1}; "
        f"xor.b32 %r6,%r6,%r5;" for k in range(10)) + " st.global.u32 [%rd1+4],%r6;"),
    "over": (75,
        "ld.global.f64 %d1,[%rd1]; ld.global.f64 %d2,[%rd1+8]; and.b32 %r4,%r2,1; setp.eq.b32 %p1,%r4,0; "
        "and.b32 %r4,%r2,2; setp.eq.b32 %p2,%r4,0; fma.rn.f64 %d0,%d1,%d2,%d2; fma.rn.f64 %d2,%d0,%d1,%d1; "
        "@%p1 bra A; fma.rn.f64 %d2,%d0,%d0,0d3FF0000000000000; A: @%p2 bra B; sub.f64 %d2,%d1,%d2; B: "
        "st.global.f64 [%rd1],%d2;"),
    # HMUL2.F32 on sm_75: a product of halves that goes on as f32
    "widened": (75,
        "{ .reg .b16 %h<3>; .reg .f32 %f; ld.global.b16 %h0,[%rd1]; ld.global.b16 %h1,[%rd1+2]; mul.f16 %h2,%h0,%h1; "
        "cvt.f32.f16 %f,%h2; st.global.f32 [%rd1+8],%f; }"),
    "copies": (80,
        "setp.gt.u32 %p1,%r2,7; selp.b32 %r4,16,0,%p1; cp.async.cg.shared.global [s],[%rd1],16,%r4; setp.gt.u32 "
        "%p1,%r3,9; selp.b32 %r5,16,0,%p1; cp.async.cg.shared.global [s+16],[%rd1+16],16,%r5;"),
    "wide": (75,
        "add.u64 %rd2,%rd1,77; setp.gt.s64 %p1,%rd2,999; selp.b64 %rd3,%rd2,%rd1,%p1; min.u64 %rd3,%rd3,%rd2; "
        "st.global.u64 [%rd1],%rd3;"),
}  # fmt: skip


def text(arch: str) -> str:
    """A module of all kinds that an SM has."""
    number = int("".join(c for c in arch if c.isdigit()))
    regs = ".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f64 %d<3>; .reg .pred %p<11>; .shared .align 16 .b8 s[1024];"
    head = "ld.param.u64 %rd1,[a]; ld.param.u32 %r2,[c]; ld.param.u32 %r3,[d]; mov.u32 %r1,%tid.x;"
    kernels = [
        (
            f".visible .entry {n}(.param .u64 a,.param .u32 c,.param .u32 d){{ {regs} {head} {body} "
            f"st.global.u32 [%rd1+64],%r1; ret; }}"
        )
        for n, (least, body) in KINDS.items()
        if least <= number
    ]
    return f".version 9.0\n.target sm_{arch}\n.address_size 64\n" + "\n".join(kernels)
