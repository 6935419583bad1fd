// Kernels in which threads meet: what barriers, convergence barriers, masks and fences are for. Made into kernels75.ptx by
// nvcc -ptx -arch=compute_75 -O3; launches and right results are in tests/check/convergence/cases.py.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef unsigned int u32;

extern "C" __global__ void bitonic(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    u32 t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    for (u32 k = 2; k <= 128; k *= 2)
        for (u32 j = k / 2; j > 0; j /= 2) {
            u32 p = t ^ j;
            if (p > t) {
                u32 a = s[t], b = s[p];
                if ((a > b) == ((t & k) == 0)) { s[t] = b; s[p] = a; }
            }
            __syncthreads();
        }
    out[blockIdx.x * 128 + t] = s[t];
}

extern "C" __global__ void scan_steps(const u32 *in, u32 *out) {
    __shared__ u32 s[2][128];
    u32 t = threadIdx.x, from = 0;
    s[0][t] = in[t];
    __syncthreads();
    for (u32 d = 1; d < 128; d *= 2) {
        u32 v = s[from][t];
        if (t >= d) v += s[from][t - d];
        from ^= 1;
        s[from][t] = v;
        __syncthreads();
    }
    out[t] = s[from][t];
}

extern "C" __global__ void scan_tree(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    u32 t = threadIdx.x, off = 1;
    s[2 * t] = in[2 * t];
    s[2 * t + 1] = in[2 * t + 1];
    for (u32 d = 64; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) s[off * (2 * t + 2) - 1] += s[off * (2 * t + 1) - 1];
        off *= 2;
    }
    if (t == 0) s[127] = 0;
    for (u32 d = 1; d < 128; d *= 2) {
        off >>= 1;
        __syncthreads();
        if (t < d) {
            u32 a = off * (2 * t + 1) - 1, b = off * (2 * t + 2) - 1, v = s[a];
            s[a] = s[b];
            s[b] += v;
        }
    }
    __syncthreads();
    out[2 * t] = s[2 * t];
    out[2 * t + 1] = s[2 * t + 1];
}

extern "C" __global__ void reduce_shared(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    u32 t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    for (u32 d = 64; d >= 32; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t < 32) {
        for (u32 d = 16; d > 0; d >>= 1) {
            u32 v = t < d ? s[t + d] : 0;
            __syncwarp();
            s[t] += v;
            __syncwarp();
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }
}

extern "C" __global__ void reduce_shuffle(const u32 *in, u32 *out, u32 n) {
    __shared__ u32 s[32];
    u32 t = threadIdx.x, sum = 0;
    for (u32 i = t; i < n; i += blockDim.x) sum += in[i];
    for (u32 d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if ((t & 31) == 0) s[t >> 5] = sum;
    __syncthreads();
    if (t < 32) {
        sum = t < (blockDim.x >> 5) ? s[t] : 0;
        for (u32 d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
        if (t == 0) out[0] = sum;
    }
}

// Warps 0 and 1 make, warps 2 and 3 use: named barriers with counts, two buffers.
extern "C" __global__ void producer(const u32 *in, u32 *out, u32 rounds) {
    __shared__ u32 s[2][64];
    u32 t = threadIdx.x;
    if (t < 64) {
        for (u32 r = 0; r < rounds; r++) {
            if (r >= 2) asm volatile("bar.sync %0, 128;" ::"r"(3 + (r & 1)) : "memory");
            s[r & 1][t] = in[r * 64 + t] * 3 + 1;
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + (r & 1)) : "memory");
        }
    } else {
        for (u32 r = 0; r < rounds; r++) {
            asm volatile("bar.sync %0, 128;" ::"r"(1 + (r & 1)) : "memory");
            out[r * 64 + t - 64] = s[r & 1][127 - t];
            if (r + 2 < rounds) asm volatile("bar.arrive %0, 128;" ::"r"(3 + (r & 1)) : "memory");
        }
    }
}

// Two halves of a block, each with its own barrier.
extern "C" __global__ void halves(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    u32 t = threadIdx.x;
    s[t] = in[t];
    if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[t] = s[63 - t] + 1;
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        out[t] = s[64 + (127 - t)] * 2;
    }
}

__device__ u32 lock_word;
extern "C" __global__ void spin_lock(u32 *count, u32 *order) {
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock_word, 0, 1) == 0) {
            __threadfence();
            u32 n = *(volatile u32 *)count;
            order[n] = blockIdx.x * blockDim.x + threadIdx.x;
            *(volatile u32 *)count = n + 1;
            __threadfence();
            atomicExch(&lock_word, 0);
            done = true;
        }
    }
}

// One thread of a warp at a time takes a ticket lock.
__device__ u32 next_ticket, now_serving;
extern "C" __global__ void ticket_lock(u32 *sums) {
    if ((threadIdx.x & 31) == 0) {
        u32 mine = atomicAdd(&next_ticket, 1);
        while (*(volatile u32 *)&now_serving != mine) { }
        __threadfence();
        sums[0] += threadIdx.x + 1;
        sums[1] ^= (blockIdx.x + 1) * (threadIdx.x + 7);
        __threadfence();
        atomicAdd(&now_serving, 1);
    }
}

extern "C" __global__ void early_exit(const u32 *in, u32 *out, u32 n) {
    __shared__ u32 s[128];
    u32 t = threadIdx.x;
    s[t] = 0;
    __syncthreads();
    if (t >= n) return;
    u32 v = in[t];
    if (v == 0) return;
    s[t] = v;
    __syncthreads();
    u32 sum = 0;
    for (u32 i = 0; i < n; i++) sum += s[i];
    if (sum & 1) { out[t] = sum; return; }
    __syncthreads();
    s[t] = v * 2;
    __syncthreads();
    out[t] = s[(t * 7) % n] + sum;
}

extern "C" __global__ void warp_parts(const u32 *in, u32 *out) {
    __shared__ u32 s[64];
    u32 t = threadIdx.x, lane = t & 31;
    s[t] = in[t];
    u32 v;
    if (lane < 16) {
        __syncwarp(0xffff);
        v = s[(t & 32) + 15 - lane];
        __syncwarp(0xffff);
        s[t] = v + 1;
        __syncwarp(0xffff);
        v += s[(t & 32) + ((lane + 3) & 15)];
    } else {
        __syncwarp(0xffff0000u);
        v = s[(t & 32) + 47 - lane];
        __syncwarp(0xffff0000u);
        s[t] = v * 3;
        __syncwarp(0xffff0000u);
        v += s[(t & 32) + 16 + ((lane + 5) & 15)];
    }
    __syncwarp();
    s[t] = v;
    __syncwarp();
    out[t] = s[(t & 32) + 31 - lane] + __shfl_xor_sync(0xffffffffu, v, 1);
}

extern "C" __global__ void tiles(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    u32 t = threadIdx.x, v = in[t];
    for (u32 d = 4; d > 0; d >>= 1) v += tile.shfl_xor(v, d);
    s[t] = v + tile.thread_rank();
    tile.sync();
    v += s[(t & ~7u) + ((t + 3) & 7)];
    if (tile.any(v & 1)) v += tile.ballot(v & 1);
    block.sync();
    s[t] = v;
    block.sync();
    cg::coalesced_group some = cg::coalesced_threads();
    if (v & 2) {
        cg::coalesced_group part = cg::coalesced_threads();
        v += part.shfl(v, 0) + part.size();
    }
    some.sync();
    out[t] = v + s[127 - t];
}

__device__ u32 blocks_done;
__device__ u32 partial[64];
extern "C" __global__ void last_block(const u32 *in, u32 *out) {
    __shared__ u32 s[64];
    __shared__ bool last;
    u32 t = threadIdx.x;
    s[t] = in[blockIdx.x * 64 + t];
    __syncthreads();
    for (u32 d = 32; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        last = atomicAdd(&blocks_done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        u32 sum = 0;
        for (u32 i = t; i < gridDim.x; i += 64) sum += partial[i] * (i + 1);
        s[t] = sum;
        __syncthreads();
        if (t == 0) {
            u32 all = 0;
            for (u32 i = 0; i < 64; i++) all += s[i];
            out[0] = all;
        }
    }
}

// Block 0 makes, the others wait for its flag.
__device__ u32 ready_flag;
__device__ u32 message[64];
extern "C" __global__ void flag_wait(const u32 *in, u32 *out) {
    u32 t = threadIdx.x;
    if (blockIdx.x == 0) {
        message[t] = in[t] * 5;
        __threadfence();
        __syncthreads();
        if (t == 0) {
            __threadfence();
            *(volatile u32 *)&ready_flag = 1;
        }
        out[t] = in[t];
    } else {
        if (t == 0) {
            while (*(volatile u32 *)&ready_flag == 0) { }
            __threadfence();
        }
        __syncthreads();
        out[blockIdx.x * 64 + t] = message[63 - t];
    }
}

// A barrier of the whole grid made of atomics.
__device__ u32 arrived;
__device__ u32 grid_data[256];
extern "C" __global__ void grid_barrier(const u32 *in, u32 *out) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x, v = in[i];
    for (u32 round = 1; round <= 3; round++) {
        grid_data[i] = v;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&arrived, 1);
            while (atomicAdd(&arrived, 0) < (2 * round - 1) * gridDim.x) { }
            __threadfence();
        }
        __syncthreads();
        v += grid_data[(i + 37) % n];
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&arrived, 1);
            while (atomicAdd(&arrived, 0) < 2 * round * gridDim.x) { }
            __threadfence();
        }
        __syncthreads();
    }
    out[i] = v;
}

extern "C" __global__ void votes(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, lane = t & 31, v = in[t], r;
    if (lane < 12) {
        r = __ballot_sync(0xfffu, v & 1);
        if (v & 4) r += v; else r ^= 3;
        r += __popc(__ballot_sync(0xfffu, v & 2));
    } else {
        r = __all_sync(0xfffff000u, v < 200) ? 7 : 9;
        r += __any_sync(0xfffff000u, v == 77) * 100;
    }
    u32 m = __match_any_sync(0xffffffffu, v & 3);
    out[t] = r + m * 3 + __ballot_sync(0xffffffffu, v & 8);
}

extern "C" __global__ void exits(const u32 *in, u32 *out, u32 n) {
    u32 t = threadIdx.x, v = in[t], found = 0, i = 0;
    for (i = 0; i < n; i++) {
        v = v * 1664525u + 1013904223u;
        if ((v >> 28) == 3) { found = 1; break; }
        for (u32 j = 0; j < (v & 7); j++) {
            v ^= v >> 3;
            if ((v & 0x1f0) == 0x130) goto out;
            v += j;
        }
        if ((v & 0xf) == 5) continue;
        v += 11;
    }
    v += 1000;
out:
    v += __shfl_xor_sync(0xffffffffu, v, 16) * 3;
    out[t] = v + found * 7 + i + __ballot_sync(0xffffffffu, found);
}

extern "C" __global__ void counts(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, v = in[t];
    int a = __syncthreads_count(v & 1);
    int b = __syncthreads_and(v < 1000);
    int c = __syncthreads_or(v == in[3]);
    out[t] = a + (b ? 1000 : 0) + (c ? 5000 : 0);
}

__noinline__ __device__ u32 collatz(u32 v) {
    u32 n = 0;
    while (v != 1 && n < 50) {
        if (v & 1) v = 3 * v + 1; else v >>= 1;
        n++;
    }
    return n;
}

__noinline__ __device__ u32 depth(u32 v, u32 d) {
    if (d == 0) return v;
    u32 r;
    if (v & 1) r = depth(v * 3 + 1, d - 1) + 1; else r = depth(v >> 1, d - 1) + collatz(d);
    return r + d;
}

extern "C" __global__ void called(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, v = in[t], r;
    if (v & 2) {
        r = collatz(v + 1);
        if (r & 1) r += collatz(r + 3);
    } else r = depth(v, 4);
    r += __shfl_down_sync(0xffffffffu, r, 1);
    out[t] = r;
}

extern "C" __global__ void switched(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    u32 t = threadIdx.x, v = in[t], r;
    switch (v & 7) {
    case 0: r = v * 3; break;
    case 1: r = v ^ 0x55; for (u32 i = 0; i < (v & 15); i++) r = r * 5 + i; break;
    case 2: r = v / 3; break;
    case 3: r = v % 7; if (r == 3) r = v; // falls
    case 4: r = v << 2; break;
    case 5: out[t] = 5; return;
    default: r = ~v;
    }
    s[t] = r;
    __syncwarp(__activemask());
    out[t] = r + (s[t] >> 1);
}

extern "C" __global__ void transpose(const u32 *in, u32 *out) {
    __shared__ u32 s[16][17];
    u32 x = threadIdx.x, y = threadIdx.y;
    for (u32 k = 0; k < 4; k++) {
        s[y][x] = in[k * 256 + y * 16 + x];
        __syncthreads();
        out[k * 256 + y * 16 + x] = s[x][y];
        __syncthreads();
    }
}

extern "C" __global__ void histogram(const u32 *in, u32 *out, u32 n) {
    __shared__ u32 s[32];
    u32 t = threadIdx.x;
    if (t < 32) s[t] = 0;
    __syncthreads();
    for (u32 i = t; i < n; i += 128) atomicAdd(&s[in[i] & 31], 1);
    __syncthreads();
    if (t < 32) out[t] = s[t];
}

// A barrier in a loop whose rounds are the same for the block, with divergent work inside.
extern "C" __global__ void loop_barrier(const u32 *in, u32 *out, u32 rounds) {
    __shared__ u32 s[96];
    u32 t = threadIdx.x, v = in[t];
    for (u32 r = 0; r < rounds; r++) {
        if (v & 1) { for (u32 i = 0; i < (v & 7); i++) v = v * 7 + i; } else if (v & 2) v = v / 5 + 3;
        s[t] = v;
        __syncthreads();
        if (s[(t + 1) % 96] > s[(t + 5) % 96]) v += s[(t + 1) % 96]; else v ^= s[(t + 2) % 96];
        __syncthreads();
    }
    out[t] = v;
}

// Divergent loop behind which the warp must have met: a shuffle in each round of an outer loop.
extern "C" __global__ void rounds_shuffle(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, v = in[t], sum = 0;
    for (u32 r = 0; r < 5; r++) {
        u32 k = v & 15;
        while (k > 2) { sum += k; k = (k * 5) >> 3; if (sum & 64) sum += 3; }
        v = v * 69069u + 1 + __shfl_xor_sync(0xffffffffu, sum, 1 << r);
    }
    out[t] = v + sum;
}
