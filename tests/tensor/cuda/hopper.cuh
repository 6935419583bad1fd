// What the kernels of this folder share: barrier objects, copies by a tensor map, products of a warpgroup, as inline PTX.
#pragma once
#include <stdint.h>

struct alignas(64) TensorMap { unsigned char bytes[128]; };

#define DEV static __device__ __forceinline__

DEV uint32_t smem_of(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// ---- barrier objects
DEV void bar_init(uint64_t *bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_of(bar)), "r"(count) : "memory");
}
DEV void bar_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void bar_expect(uint64_t *bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_of(bar)), "r"(bytes) : "memory");
}
DEV void bar_arrive(uint64_t *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_of(bar)) : "memory");
}
DEV void bar_arrive_at(uint64_t *bar, int rank) {
    asm volatile("{\n.reg .b32 far;\nmapa.shared::cluster.u32 far, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [far];\n}"
                 ::"r"(smem_of(bar)), "r"(rank) : "memory");
}
DEV void bar_wait(uint64_t *bar, int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(smem_of(bar)), "r"(parity) : "memory");
}

// ---- clusters
DEV int cluster_rank() { int r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEV void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- copies by a map
DEV void load_2d(void *to, const TensorMap *map, uint64_t *bar, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 ::"r"(smem_of(to)), "l"(map), "r"(smem_of(bar)), "r"(x), "r"(y) : "memory");
}
DEV void load_3d(void *to, const TensorMap *map, uint64_t *bar, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
                 ::"r"(smem_of(to)), "l"(map), "r"(smem_of(bar)), "r"(x), "r"(y), "r"(z) : "memory");
}
DEV void load_2d_all(void *to, const TensorMap *map, uint64_t *bar, int x, int y, int mask) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%3, %4}], [%2], %5;"
                 ::"r"(smem_of(to)), "l"(map), "r"(smem_of(bar)), "r"(x), "r"(y), "h"((short)mask) : "memory");
}
DEV void store_2d(const TensorMap *map, const void *from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(map), "r"(smem_of(from)), "r"(x), "r"(y) : "memory");
}
DEV void add_2d(const TensorMap *map, const void *from, int x, int y) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(map), "r"(smem_of(from)), "r"(x), "r"(y) : "memory");
}
DEV void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEV void store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
DEV void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- products: descriptors, order
// swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32
DEV uint64_t desc_of(const void *p, int lead, int stride, int swizzle) {
    return (uint64_t)((smem_of(p) & 0x3FFFF) >> 4) | (uint64_t)(lead >> 4) << 16 | (uint64_t)(stride >> 4) << 32
         | (uint64_t)swizzle << 62;
}
DEV void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEV void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

#define REGS8(c, d, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define REGS32(c, d) REGS8(c, d, 0), REGS8(c, d, 8), REGS8(c, d, 16), REGS8(c, d, 24)
#define NAMES16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define NAMES32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
                "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
// d (32 registers) = a * b + (keep ? d : 0), 64 columns
#define PRODUCT(name, type, c, shape, more)                                                                   \
    DEV void name(type *d, uint64_t a, uint64_t b, int keep) {                                                \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned." shape " " NAMES32  \
                     ", %32, %33, p" more ";\n}" : REGS32(c, d) : "l"(a), "l"(b), "r"(keep));                     \
    }
#define F_OUT(x) "+f"(x)
#define R_OUT(x) "+r"(x)
PRODUCT(mma_f16, float, F_OUT, "m64n64k16.f32.f16.f16", ", 1, 1, 0, 0")
PRODUCT(mma_f16_bt, float, F_OUT, "m64n64k16.f32.f16.f16", ", 1, 1, 0, 1")
PRODUCT(mma_f16_tt, float, F_OUT, "m64n64k16.f32.f16.f16", ", 1, 1, 1, 1")
PRODUCT(mma_bf16, float, F_OUT, "m64n64k16.f32.bf16.bf16", ", 1, 1, 0, 0")
PRODUCT(mma_tf32, float, F_OUT, "m64n64k8.f32.tf32.tf32", ", 1, 1")
PRODUCT(mma_e4m3, float, F_OUT, "m64n64k32.f32.e4m3.e4m3", ", 1, 1")
PRODUCT(mma_s8, int, R_OUT, "m64n64k32.s32.s8.s8", "")
// half sums
DEV void mma_f16_half(uint32_t *d, uint64_t a, uint64_t b, int keep) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16 " NAMES16
                 ", %16, %17, p, 1, 1, 1, 1;\n}" : REGS8(R_OUT, d, 0), REGS8(R_OUT, d, 8) : "l"(a), "l"(b), "r"(keep));
}
// a in registers; neg: of a
DEV void mma_f16_regs(float *d, const uint32_t *a, uint64_t b, int keep) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " NAMES32
                 ", {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"
                 : REGS32(F_OUT, d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}
DEV void mma_f16_regs_bt(float *d, const uint32_t *a, uint64_t b, int keep) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " NAMES32
                 ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
                 : REGS32(F_OUT, d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}
// column and row of accumulator i (of 32 bits) of a thread in its tile of 64 rows
DEV int row_of(int i) { return (threadIdx.x % 128) / 32 * 16 + threadIdx.x % 32 / 4 + (i / 2 % 2) * 8; }
DEV int col_of(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }
