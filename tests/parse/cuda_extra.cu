// What the headers' templates and classes make: compile with nvcc -ptx -std=c++17 and give the file to tests.parse.corpus_check.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp16.h>
#include <mma.h>
namespace cg = cooperative_groups;

__global__ void groups(int* p) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int v = p[block.thread_rank()];
    v = cg::reduce(tile, v, cg::plus<int>()) + cg::inclusive_scan(tile, v) + tile.shfl_xor(v, 3) + tile.match_any(v) + tile.ballot(v > 3);
    auto active = cg::coalesced_threads();
    v += active.size() + active.any(v == 2) + cg::reduce(active, v, cg::greater<int>());
    block.sync();
    cg::grid_group grid = cg::this_grid();
    p[grid.thread_rank()] = v + tile.meta_group_rank();
}
__global__ void copies(const float* g, float* o) {
    __shared__ float s[256];
    cg::memcpy_async(cg::this_thread_block(), s, g, sizeof(s));
    cg::wait(cg::this_thread_block());
    o[threadIdx.x] = s[255 - threadIdx.x];
}
#if __CUDA_ARCH__ >= 700
__global__ void atomics(cuda::atomic<int, cuda::thread_scope_device>* a, cuda::atomic_ref<float, cuda::thread_scope_block>* f, long long* r) {
    a->fetch_add(1, cuda::memory_order_acq_rel);
    a->fetch_max(7, cuda::memory_order_release);
    int e = 3;
    a->compare_exchange_strong(e, 5, cuda::memory_order_seq_cst, cuda::memory_order_acquire);
    f->fetch_add(1.5f, cuda::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
    r[0] = a->load(cuda::memory_order_acquire) + e + a->exchange(9);
    a->wait(1);
    a->notify_all();
}
__global__ void barriers(const int* g, int* o) {
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    __shared__ int s[128];
    if (threadIdx.x == 0) init(&b, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(s + threadIdx.x, g + threadIdx.x, sizeof(int), b);
    b.arrive_and_wait();
    o[threadIdx.x] = s[127 - threadIdx.x];
}
__global__ void pipelines(const int4* g, int4* o, int n) {
    __shared__ int4 s[2][64];
    auto pipe = cuda::make_pipeline();
    for (int k = 0; k < n; ++k) {
        pipe.producer_acquire();
        cuda::memcpy_async(&s[k & 1][threadIdx.x], g + 64 * k + threadIdx.x, cuda::aligned_size_t<16>(16), pipe);
        pipe.producer_commit();
        pipe.consumer_wait();
        o[threadIdx.x] = s[k & 1][threadIdx.x];
        pipe.consumer_release();
    }
}
__global__ void fragments(const half* a, const half* b, float* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 0.f);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_row_major);
}
__global__ void bytes(const signed char* a, int* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 32, 8, 16, signed char, col_major> fa;
    fragment<matrix_b, 32, 8, 16, signed char, row_major> fb;
    fragment<accumulator, 32, 8, 16, int> fc;
    load_matrix_sync(fc, c, 8, mem_col_major);
    load_matrix_sync(fa, a, 32);
    load_matrix_sync(fb, a, 8);
    mma_sync(fc, fa, fb, fc, true);
    store_matrix_sync(c, fc, 8, mem_col_major);
}
#endif
__global__ void textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float4* o, int4* q) {
    float x = threadIdx.x, y = blockIdx.x;
    o[0] = tex1D<float4>(t, x);
    o[1] = tex2D<float4>(t, x, y);
    o[2] = tex3D<float4>(t, x, y, 1.f);
    o[3] = tex1DLayered<float4>(t, x, 2);
    o[4] = tex2DLayered<float4>(t, x, y, 3);
    o[5] = texCubemap<float4>(t, x, y, 1.f);
    o[6] = texCubemapLayered<float4>(t, x, y, 1.f, 2);
    o[7] = tex2DLod<float4>(t, x, y, 1.f);
    o[8] = tex2DGrad<float4>(t, x, y, make_float2(x, y), make_float2(y, x));
    o[9] = tex3DGrad<float4>(t, x, y, x, make_float4(x, y, x, 0), make_float4(y, x, y, 0));
    o[10] = tex2Dgather<float4>(t, x, y, 2);
    q[0] = tex1Dfetch<int4>(t, threadIdx.x);
    q[1] = tex1DLayeredLod<int4>(t, x, 1, y);
    float a = surf2Dread<float>(s, threadIdx.x * 4, blockIdx.x, cudaBoundaryModeClamp);
    surf2Dwrite(a, s, threadIdx.x * 4, blockIdx.x, cudaBoundaryModeZero);
    surf1Dwrite(make_uint2(1, 2), s, threadIdx.x * 8);
    surf3Dwrite(make_short4(1, 2, 3, 4), s, 0, 1, 2);
    surf2DLayeredwrite((unsigned char)1, s, 0, 1, 2);
    q[2] = surf1DLayeredread<int4>(s, 16, 2);
    q[3] = surfCubemapread<int4>(s, 0, 1, 2);
}
__global__ void video(unsigned* p) {
    unsigned a = p[0], b = p[1];
    p[2] = __vadd2(a, b) + __vaddss4(a, b) + __vsubus2(a, b) + __vabsdiffu4(a, b) + __vcmpgts2(a, b) + __vmaxs4(a, b) + __vavgu4(a, b) + __vsads2(a, b) + __vseteq4(a, b) + __vnegss2(a) + __viaddmax_s16x2(a, b, a);
}
