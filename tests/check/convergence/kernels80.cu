// As kernels75.cu, for what sm_80 has: barrier objects in shared memory, asynchronous copies, warp reductions. nvcc -ptx -arch=compute_80 -O3.
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 shared_at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64 *b, u32 n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_at(b)), "r"(n) : "memory"); }
__device__ __forceinline__ u64 arrive(u64 *b) {
    u64 s;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(s) : "r"(shared_at(b)) : "memory");
    return s;
}
__device__ __forceinline__ void wait(u64 *b, u64 s) {
    u32 done;
    do asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(shared_at(b)), "l"(s) : "memory");
    while (!done);
}

extern "C" __global__ void barrier_object(const u32 *in, u32 *out) {
    __shared__ u32 s[128];
    __shared__ u64 bar;
    u32 t = threadIdx.x, v = in[t];
    if (t == 0) init(&bar, 128);
    __syncthreads();
    for (u32 r = 0; r < 3; r++) {
        s[t] = v + r;
        wait(&bar, arrive(&bar));
        v += s[(t + 33) & 127];
        wait(&bar, arrive(&bar));
    }
    out[t] = v;
}

extern "C" __global__ void copies(const u32 *in, u32 *out, u32 rounds) {
    __shared__ u32 s[2][128];
    u32 t = threadIdx.x, sum = 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" ::"r"(shared_at(&s[0][t])), "l"(in + t) : "memory");
    for (u32 r = 0; r < rounds; r++) {
        if (r + 1 < rounds) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_at(&s[(r + 1) & 1][t])), "l"(in + (r + 1) * 128 + t) : "memory");
        asm volatile("cp.async.commit_group; cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        sum = sum * 3 + s[r & 1][127 - t];
        __syncthreads();
    }
    out[t] = sum;
}

extern "C" __global__ void warp_reduce(const u32 *in, u32 *out) {
    u32 t = threadIdx.x, lane = t & 31, v = in[t], r;
    if (lane & 1) r = __reduce_add_sync(0xaaaaaaaau, v); else r = __reduce_max_sync(0x55555555u, v);
    if (v & 4) r += v * 3;
    out[t] = r + __reduce_xor_sync(0xffffffffu, v + r);
}

extern "C" __global__ void message_acq(const u32 *in, u32 *out, u32 *flag, u32 *data) {
    u32 t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = in[t] + 9;
        __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
        out[t] = 1;
    } else {
        if (t == 0) {
            u32 v;
            do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (!v);
        }
        __syncthreads();
        out[blockIdx.x * 64 + t] = data[(t + 1) & 63];
    }
}
