// sm_100a: C = A B' (128 x 64 tiles of halves, K contiguous) and C = A' B (64 x 64 tiles of bfloats, M and N contiguous), the
// sums in tensor memory.
#include "hopper.cuh"

#define EIGHT(c, d, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define R_IN(x) "=r"(x)

// 32 columns from the warp's lanes: lane, column of thread and register are the same numbers
DEV void tensor_load(uint32_t *d, uint32_t at) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 " NAMES32 ", [%32];\ntcgen05.wait::ld.sync.aligned;"
                 : EIGHT(R_IN, d, 0), EIGHT(R_IN, d, 8), EIGHT(R_IN, d, 16), EIGHT(R_IN, d, 24) : "r"(at));
}
// 16 lanes, eight columns a unit, as the sums of mma.sync
DEV void tensor_load_tile(uint32_t *d, uint32_t at) {
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x8.b32 " NAMES32 ", [%32];\ntcgen05.wait::ld.sync.aligned;"
                 : EIGHT(R_IN, d, 0), EIGHT(R_IN, d, 8), EIGHT(R_IN, d, 16), EIGHT(R_IN, d, 24) : "r"(at));
}
DEV void product(uint32_t d, uint64_t a, uint64_t b, uint32_t what, int keep) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}"
                 ::"r"(d), "l"(a), "l"(b), "r"(what), "r"(keep) : "memory");
}
DEV void commit(uint64_t *bar) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem_of(bar)) : "memory");
}
DEV uint64_t desc5_of(const void *p, int lead, int stride, uint64_t swizzle) {
    return desc_of(p, lead, stride, 0) | 1ull << 46 | swizzle << 61;
}
DEV uint32_t tensor_columns(uint32_t *slot) {
    if (threadIdx.x < 32)
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(smem_of(slot)) : "memory");
    __syncthreads();
    return *(volatile uint32_t *)slot;
}
DEV void tensor_free(uint32_t at) {
    __syncthreads();
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(at));
    }
}

// A, B: rows of 64 halves, swizzled by 128 bytes
extern "C" __global__ void __launch_bounds__(128)
    gemm5_f16(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, float *c, int n, int k) {
    extern __shared__ __align__(1024) unsigned char smem[];
    __shared__ uint64_t full[2], done[2];
    __shared__ uint32_t slot;
    const int x = blockIdx.x * 64, y = blockIdx.y * 128, rounds = k / 64, stage = 128 * 128 + 64 * 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) { bar_init(full + s, 1); bar_init(done + s, 1); }
        bar_init_fence();
    }
    uint32_t sums = tensor_columns(&slot);
    const uint32_t what = 1 << 4 | 64 / 8 << 17 | 128 / 16 << 24;
    if (threadIdx.x == 0)
        for (int i = 0; i < rounds; i++) {
            int s = i & 1;
            if (i >= 2) bar_wait(done + s, (i / 2 & 1) ^ 1);
            unsigned char *a = smem + s * stage, *b = a + 128 * 128;
            bar_expect(full + s, stage);
            load_2d(a, &ma, full + s, i * 64, y);
            load_2d(b, &mb, full + s, i * 64, x);
            bar_wait(full + s, i / 2 & 1);
            for (int j = 0; j < 4; j++)
                product(sums, desc5_of(a + 32 * j, 16, 1024, 2), desc5_of(b + 32 * j, 16, 1024, 2), what, i || j);
            commit(done + s);
        }
    __syncthreads();
    bar_wait(done + (rounds - 1 & 1), (rounds - 1) / 2 & 1);
    asm volatile("tcgen05.fence::after_thread_sync;");
    for (int half = 0; half < 64; half += 32) {
        uint32_t d[32];
        tensor_load(d, sums + (threadIdx.x / 32 << 21) + half);
        for (int i = 0; i < 32; i++) c[(y + threadIdx.x) * n + x + half + i] = __uint_as_float(d[i]);
    }
    tensor_free(sums);
}

// A, B: rows (of k) of 32 bfloats, swizzled by 64 bytes; two boxes for 64; sums of 64 rows are in 16 lanes of each warp
extern "C" __global__ void __launch_bounds__(128)
    gemm5_major(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, float *c, int n, int k) {
    extern __shared__ __align__(1024) unsigned char smem[];
    __shared__ uint64_t full, done;
    __shared__ uint32_t slot;
    const int x = blockIdx.x * 64, y = blockIdx.y * 64;
    if (threadIdx.x == 0) { bar_init(&full, 1); bar_init(&done, 1); bar_init_fence(); }
    uint32_t sums = tensor_columns(&slot);
    const uint32_t what = 1 << 4 | 1 << 7 | 1 << 10 | 1 << 15 | 1 << 16 | 64 / 8 << 17 | 64 / 16 << 24;
    for (int i = 0; i < k / 32; i++) {
        if (threadIdx.x == 0) {
            bar_expect(&full, 4 * 2048);
            for (int h = 0; h < 2; h++) {
                load_2d(smem + h * 2048, &ma, &full, y + 32 * h, i * 32);
                load_2d(smem + 4096 + h * 2048, &mb, &full, x + 32 * h, i * 32);
            }
            bar_wait(&full, i & 1);
            for (int j = 0; j < 2; j++)
                product(sums, desc5_of(smem + 1024 * j, 2048, 512, 4), desc5_of(smem + 4096 + 1024 * j, 2048, 512, 4), what, i || j);
            commit(&done);
        }
        __syncthreads();
        bar_wait(&done, i & 1);
    }
    asm volatile("tcgen05.fence::after_thread_sync;");
    uint32_t d[32];
    tensor_load_tile(d, sums + (threadIdx.x / 32 << 21));
    for (int i = 0; i < 32; i++) c[(y + row_of(i)) * n + x + col_of(i)] = __uint_as_float(d[i]);
    tensor_free(sums);
}
