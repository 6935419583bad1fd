// C = A B' in tiles of 64 x 64 by one warpgroup: a pipeline of copies by maps, which thread 0 starts, and products.
#include "hopper.cuh"

constexpr int STAGES = 3;

// BYTES: of a row of a tile; swizzle of the descriptors; products of 32 bytes of K
template <class Acc, int BYTES, int SWIZZLE, int ELEMENT, class Product>
DEV void gemm(const TensorMap *ma, const TensorMap *mb, Acc *c, int n, int k, Product product) {
    extern __shared__ __align__(1024) unsigned char smem[];
    __shared__ uint64_t full[STAGES];
    constexpr int TILE = 64 * BYTES;
    const int rounds = k * ELEMENT / BYTES;
    const int x = blockIdx.x * 64, y = blockIdx.y * 64;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) bar_init(full + s, 1);
        bar_init_fence();
    }
    __syncthreads();
    auto fetch = [&](int i) {
        int s = i % STAGES;
        bar_expect(full + s, 2 * TILE);
        load_2d(smem + 2 * s * TILE, ma, full + s, i * (BYTES / ELEMENT), y);
        load_2d(smem + (2 * s + 1) * TILE, mb, full + s, i * (BYTES / ELEMENT), x);
    };
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES - 1 && i < rounds; i++) fetch(i);
    Acc d[32];
    for (int i = 0; i < rounds; i++) {
        int s = i % STAGES;
        bar_wait(full + s, i / STAGES & 1);
        wg_fence();
        for (int j = 0; j < BYTES / 32; j++)
            product(d, desc_of(smem + 2 * s * TILE + 32 * j, 16, 8 * BYTES, SWIZZLE),
                    desc_of(smem + (2 * s + 1) * TILE + 32 * j, 16, 8 * BYTES, SWIZZLE), i || j);
        wg_commit();
        wg_wait<0>();
        __syncthreads();
        if (threadIdx.x == 0 && i + STAGES - 1 < rounds) fetch(i + STAGES - 1);
    }
    for (int i = 0; i < 32; i++) c[(y + row_of(i)) * n + x + col_of(i)] = d[i];
}

#define KERNEL(name, acc, bytes, swizzle, element, product)                                                    \
    extern "C" __global__ void __launch_bounds__(128)                                                          \
        name(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, acc *c, int n, int k) { \
        gemm<acc, bytes, swizzle, element>(&ma, &mb, c, n, k,                                                  \
            [](acc *d, uint64_t a, uint64_t b, int keep) { product(d, a, b, keep); });                           \
    }
KERNEL(gemm_f16, float, 128, 1, 2, mma_f16)
KERNEL(gemm_bf16, float, 64, 2, 2, mma_bf16)
KERNEL(gemm_tf32, float, 32, 3, 4, mma_tf32)
KERNEL(gemm_e4m3, float, 128, 1, 1, mma_e4m3)
KERNEL(gemm_s8, int, 64, 2, 1, mma_s8)
