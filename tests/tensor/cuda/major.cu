// Operands whose M or N is contiguous; sums in halves; operands written by threads; A in registers; split K.
#include "hopper.cuh"
#include <cuda_fp16.h>

// C = A' B, both with K rows of M or N halves; half sums; rows of 64 halves, swizzled by 128 bytes
extern "C" __global__ void __launch_bounds__(128)
    gemm_major(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, __half *c, int n, int k) {
    extern __shared__ __align__(1024) unsigned char smem[];
    __shared__ uint64_t full;
    const int x = blockIdx.x * 64, y = blockIdx.y * 64;
    if (threadIdx.x == 0) { bar_init(&full, 1); bar_init_fence(); }
    __syncthreads();
    uint32_t d[16];
    for (int i = 0; i < k / 64; i++) {
        if (threadIdx.x == 0) {
            bar_expect(&full, 2 * 8192);
            load_2d(smem, &ma, &full, y, i * 64);
            load_2d(smem + 8192, &mb, &full, x, i * 64);
        }
        bar_wait(&full, i & 1);
        wg_fence();
        for (int j = 0; j < 4; j++)
            mma_f16_half(d, desc_of(smem + j * 2048, 8192, 1024, 1), desc_of(smem + 8192 + j * 2048, 8192, 1024, 1), i || j);
        wg_commit();
        wg_wait<0>();
        __syncthreads();
    }
    for (int i = 0; i < 16; i++)
        *(uint32_t *)&c[(y + row_of(2 * i)) * n + x + col_of(2 * i)] = d[i];
}

// No swizzle: threads write core matrices (8 rows of 16 bytes, 128 bytes together); A by ldmatrix in registers; C' += by a map
extern "C" __global__ void __launch_bounds__(128)
    gemm_split(const __half *a, const __half *b, const __grid_constant__ TensorMap mc, int k, int part) {
    __shared__ __align__(128) unsigned char sa[64 * 128], sb[64 * 128];
    __shared__ __align__(128) float sc[64 * 64];
    const int x = blockIdx.x * 64, y = blockIdx.y * 64, first = blockIdx.z * part;
    float d[32];
    for (int i = 0; i < part; i += 64) {
        for (int j = threadIdx.x; j < 64 * 8; j += 128) {
            int row = j / 8, chunk = j % 8, at = row / 8 * 128 + row % 8 * 16 + chunk * 1024;
            *(uint4 *)(sa + row * 128 + (chunk ^ row % 8) * 16) = *(const uint4 *)&a[(y + row) * k + first + i + chunk * 8];
            *(uint4 *)(sb + at) = *(const uint4 *)&b[(x + row) * k + first + i + chunk * 8];
        }
        proxy_fence();
        __syncthreads();
        for (int j = 0; j < 4; j++) {
            uint32_t r[4];
            int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane % 16, chunk = 2 * j + lane / 16;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem_of(sa + row * 128 + (chunk ^ row % 8) * 16)));
            wg_fence();
            mma_f16_regs(d, r, desc_of(sb + 2 * j * 1024, 1024, 128, 0), i || j);
            wg_commit();
            wg_wait<0>();
        }
        __syncthreads();
    }
    for (int i = 0; i < 32; i++) sc[row_of(i) * 64 + col_of(i)] = d[i];
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        add_2d(&mc, sc, x, y);
        store_commit();
        store_wait();
    }
}

// Attention of 64 queries and a head of 64: softmax(Q K' / 8) V, keys in steps of 64; the weights are A in registers
extern "C" __global__ void __launch_bounds__(128)
    attention(const __grid_constant__ TensorMap mq, const __grid_constant__ TensorMap mk, const __grid_constant__ TensorMap mv,
              float *o, int keys) {
    extern __shared__ __align__(1024) unsigned char smem[];
    __shared__ uint64_t full;
    const int y = blockIdx.x * 64, head = blockIdx.y;
    if (threadIdx.x == 0) { bar_init(&full, 1); bar_init_fence(); }
    __syncthreads();
    float out[32], most[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
    for (int i = 0; i < 32; i++) out[i] = 0;
    for (int i = 0; i < keys / 64; i++) {
        if (threadIdx.x == 0) {
            bar_expect(&full, (i ? 2 : 3) * 8192);
            if (!i) load_3d(smem, &mq, &full, 0, y, head);
            load_3d(smem + 8192, &mk, &full, 0, i * 64, head);
            load_3d(smem + 16384, &mv, &full, 0, i * 64, head);
        }
        bar_wait(&full, i & 1);
        float s[32];
        wg_fence();
        for (int j = 0; j < 4; j++)
            mma_f16(s, desc_of(smem + 32 * j, 16, 1024, 1), desc_of(smem + 8192 + 32 * j, 16, 1024, 1), j);
        wg_commit();
        wg_wait<0>();
        uint32_t p[16];
        for (int h = 0; h < 2; h++) {
            float top = most[h];
            for (int j = 0; j < 16; j++) top = fmaxf(top, s[j / 2 * 4 + 2 * h + j % 2] * 0.125f);
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            float scale = exp2f((most[h] - top) * 1.4426950408889634f);
            most[h] = top;
            sum[h] *= scale;
            for (int j = 0; j < 16; j++) out[j / 2 * 4 + 2 * h + j % 2] *= scale;
            for (int j = 0; j < 8; j++) {
                float u = exp2f((s[4 * j + 2 * h] * 0.125f - top) * 1.4426950408889634f);
                float v = exp2f((s[4 * j + 2 * h + 1] * 0.125f - top) * 1.4426950408889634f);
                sum[h] += u + v;
                __half2 two = __floats2half2_rn(u, v);
                p[2 * j + h] = *(uint32_t *)&two;
            }
        }
        wg_fence();
        for (int j = 0; j < 4; j++) mma_f16_regs_bt(out, p + 4 * j, desc_of(smem + 16384 + j * 2048, 8192, 1024, 1), 1);
        wg_commit();
        wg_wait<0>();
        __syncthreads();
    }
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
        sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
        for (int j = 0; j < 16; j++) {
            int i = j / 2 * 4 + 2 * h + j % 2;
            o[(head * gridDim.x * 64 + y + row_of(i)) * 64 + col_of(i)] = out[i] / sum[h];
        }
    }
}
