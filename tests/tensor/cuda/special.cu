// Two groups of consumers and one of producers, a cluster that shares B, output through shared memory by a map.
#include "hopper.cuh"
#include <cuda_bf16.h>

constexpr int STAGES = 4, A_BYTES = 128 * 128, B_BYTES = 64 * 128, STAGE = A_BYTES + B_BYTES;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    gemm_special(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb,
                 const __grid_constant__ TensorMap mc, int k) {
    extern __shared__ __align__(1024) unsigned char smem[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int group = threadIdx.x / 128, rounds = k / 64, rank = cluster_rank();
    const int y = blockIdx.x * 128, x = blockIdx.y * 64;  // the blocks of a cluster have other rows, the same columns
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            bar_init(full + s, 1);
            bar_init(empty + s, 4);  // two groups of two blocks
        }
        bar_init_fence();
    }
    cluster_sync();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (int i = 0; i < rounds; i++) {
                int s = i % STAGES;
                bar_wait(empty + s, (i / STAGES & 1) ^ 1);
                unsigned char *at = smem + s * STAGE;
                bar_expect(full + s, STAGE);
                load_2d(at, &ma, full + s, i * 64, y);
                // each block brings half of B to both
                load_2d_all(at + A_BYTES + rank * (B_BYTES / 2), &mb, full + s, i * 64, x + rank * 32, 3);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[32];
        for (int i = 0; i < rounds; i++) {
            int s = i % STAGES;
            bar_wait(full + s, i / STAGES & 1);
            unsigned char *a = smem + s * STAGE + (group - 1) * 64 * 128, *b = smem + s * STAGE + A_BYTES;
            wg_fence();
            for (int j = 0; j < 4; j++)
                mma_bf16(d, desc_of(a + 32 * j, 16, 1024, 1), desc_of(b + 32 * j, 16, 1024, 1), i || j);
            wg_commit();
            wg_wait<0>();
            if (threadIdx.x % 128 < 2) bar_arrive_at(empty + s, threadIdx.x % 128);
        }
        // 64 x 64 bfloats of each group, rows of 128 bytes, swizzled
        unsigned char *out = smem + STAGES * STAGE + (group - 1) * 64 * 128;
        for (int i = 0; i < 32; i += 8) {
            uint32_t r[4];
            for (int j = 0; j < 4; j++) {
                __nv_bfloat162 two = __floats2bfloat162_rn(d[i + 2 * j], d[i + 2 * j + 1]);
                r[j] = *(uint32_t *)&two;
            }
            int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16, chunk = i / 4 + lane / 16;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                         ::"r"(smem_of(out + row * 128 + (chunk ^ row % 8) * 16)), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                         : "memory");
        }
        proxy_fence();
        asm volatile("bar.sync %0, 128;" ::"r"(group));
        if (threadIdx.x % 128 == 0) {
            store_2d(&mc, out, x, y + (group - 1) * 64);
            store_commit();
            store_wait();
        }
    }
    cluster_sync();
}
