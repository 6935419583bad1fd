// Kernels of neural networks: normalization, softmax, rope, attention rows, quantization, top-k, matmul tiles.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <stdint.h>

__device__ float warp_sum(float v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); return v; }
__device__ float warp_max(float v) { for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o)); return v; }

extern "C" __global__ void layer_norm(const float *__restrict__ x, const float *__restrict__ g, const float *__restrict__ b, float *__restrict__ y, int cols, float eps)
{
    __shared__ float part[2][32];
    const float *row = x + (long)blockIdx.x * cols;
    float s = 0, q = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) { float v = row[c]; s += v; q += v * v; }
    s = warp_sum(s); q = warp_sum(q);
    int w = threadIdx.x >> 5, l = threadIdx.x & 31;
    if (!l) { part[0][w] = s; part[1][w] = q; }
    __syncthreads();
    s = q = 0;
    for (int k = 0; k < (blockDim.x + 31) / 32; k++) { s += part[0][k]; q += part[1][k]; }
    float mean = s / cols, inv = rsqrtf(q / cols - mean * mean + eps);
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[(long)blockIdx.x * cols + c] = (row[c] - mean) * inv * g[c] + b[c];
}

extern "C" __global__ void rms_norm_half(const __half2 *__restrict__ x, const __half2 *__restrict__ g, __half2 *__restrict__ y, int pairs, float eps)
{
    const __half2 *row = x + (long)blockIdx.x * pairs;
    float q = 0;
    for (int c = threadIdx.x; c < pairs; c += 32) { float2 v = __half22float2(row[c]); q += v.x * v.x + v.y * v.y; }
    q = warp_sum(q);
    __half2 inv = __float2half2_rn(rsqrtf(q / (2 * pairs) + eps));
    for (int c = threadIdx.x; c < pairs; c += 32) y[(long)blockIdx.x * pairs + c] = __hmul2(__hmul2(row[c], inv), g[c]);
}

extern "C" __global__ void softmax_rows(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    const float *row = x + (long)blockIdx.x * cols;
    float m = -1e30f, s = 0;
    for (int c = threadIdx.x; c < cols; c += 32) m = fmaxf(m, row[c]);
    m = warp_max(m);
    for (int c = threadIdx.x; c < cols; c += 32) s += __expf(row[c] - m);
    s = warp_sum(s);
    for (int c = threadIdx.x; c < cols; c += 32) y[(long)blockIdx.x * cols + c] = __expf(row[c] - m) / s;
}

extern "C" __global__ void rope_bf16(__nv_bfloat162 *__restrict__ q, const float2 *__restrict__ cs, int heads, int half_dim)
{
    int t = blockIdx.x, h = threadIdx.y, d = threadIdx.x;
    if (h >= heads || d >= half_dim) return;
    long at = ((long)t * heads + h) * half_dim + d;
    float2 v = __bfloat1622float2(q[at]), c = cs[t * half_dim + d];
    q[at] = __floats2bfloat162_rn(v.x * c.x - v.y * c.y, v.x * c.y + v.y * c.x);
}

extern "C" __global__ void silu_mul(const __half *__restrict__ a, const __half *__restrict__ b, __half *__restrict__ y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float v = __half2float(a[i]); y[i] = __float2half(v / (1.0f + __expf(-v)) * __half2float(b[i])); }
}

extern "C" __global__ void gelu4(const float4 *__restrict__ x, float4 *__restrict__ y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = x[i];
    float *p = &v.x;
    #pragma unroll
    for (int k = 0; k < 4; k++) { float z = p[k]; p[k] = 0.5f * z * (1.0f + tanhf(0.79788456f * (z + 0.044715f * z * z * z))); }
    y[i] = v;
}

extern "C" __global__ void quantize_int8(const float *__restrict__ x, int8_t *__restrict__ q, float *__restrict__ scale, int cols)
{
    const float *row = x + (long)blockIdx.x * cols;
    float m = 0;
    for (int c = threadIdx.x; c < cols; c += 32) m = fmaxf(m, fabsf(row[c]));
    m = warp_max(m);
    float s = m / 127.0f, inv = m > 0 ? 127.0f / m : 0;
    if (!threadIdx.x) scale[blockIdx.x] = s;
    for (int c = threadIdx.x; c < cols; c += 32) q[(long)blockIdx.x * cols + c] = (int8_t)max(-127, min(127, __float2int_rn(row[c] * inv)));
}

extern "C" __global__ void dequant_q4(const uint8_t *__restrict__ blocks, float *__restrict__ y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint8_t *b = blocks + (long)i * 18;
    float d = __half2float(*(const __half *)b);
    #pragma unroll
    for (int k = 0; k < 16; k++) {
        int v = b[2 + k];
        y[(long)i * 32 + k] = ((v & 15) - 8) * d;
        y[(long)i * 32 + k + 16] = ((v >> 4) - 8) * d;
    }
}

extern "C" __global__ void top_k(const float *__restrict__ x, float *__restrict__ v, int *__restrict__ at, int cols)
{
    float best[4] = {-1e30f, -1e30f, -1e30f, -1e30f};
    int idx[4] = {-1, -1, -1, -1};
    const float *row = x + (long)blockIdx.x * cols;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        float z = row[c]; int j = c;
        #pragma unroll
        for (int k = 0; k < 4; k++) if (z > best[k]) { float t = best[k]; best[k] = z; z = t; int u = idx[k]; idx[k] = j; j = u; }
    }
    #pragma unroll
    for (int k = 0; k < 4; k++) { v[(blockIdx.x * blockDim.x + threadIdx.x) * 4 + k] = best[k]; at[(blockIdx.x * blockDim.x + threadIdx.x) * 4 + k] = idx[k]; }
}

extern "C" __global__ void embedding(const int *__restrict__ ids, const float4 *__restrict__ table, float4 *__restrict__ y, int width, int words)
{
    int id = ids[blockIdx.x];
    if ((unsigned)id >= (unsigned)words) id = 0;
    for (int c = threadIdx.x; c < width; c += blockDim.x) y[(long)blockIdx.x * width + c] = table[(long)id * width + c];
}

extern "C" __global__ void adam(float *__restrict__ p, float *__restrict__ m, float *__restrict__ v, const float *__restrict__ g, int n, float lr, float b1, float b2, float eps)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float gi = g[i], mi = b1 * m[i] + (1 - b1) * gi, vi = b2 * v[i] + (1 - b2) * gi * gi;
        m[i] = mi; v[i] = vi;
        p[i] -= lr * mi / (sqrtf(vi) + eps);
    }
}

extern "C" __global__ void sgemm_tile(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k)
{
    __shared__ float sa[16][17], sb[16][64];
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4, row = blockIdx.y * 16 + ty, col = blockIdx.x * 64 + tx * 4;
    float acc[4] = {0, 0, 0, 0};
    for (int t = 0; t < k; t += 16) {
        sa[ty][tx] = row < m && t + tx < k ? a[(long)row * k + t + tx] : 0;
        #pragma unroll
        for (int j = 0; j < 4; j++) sb[ty][tx * 4 + j] = t + ty < k && col + j < n ? b[(long)(t + ty) * n + col + j] : 0;
        __syncthreads();
        #pragma unroll
        for (int q = 0; q < 16; q++) {
            float av = sa[ty][q];
            #pragma unroll
            for (int j = 0; j < 4; j++) acc[j] += av * sb[q][tx * 4 + j];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int j = 0; j < 4; j++) if (row < m && col + j < n) c[(long)row * n + col + j] = acc[j];
}

extern "C" __global__ void attention_row(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ o, int len, float scale)
{
    int lane = threadIdx.x;
    float qv = q[blockIdx.x * 32 + lane], m = -1e30f, s = 0, acc = 0;
    for (int j = 0; j < len; j++) {
        float d = warp_sum(qv * k[j * 32 + lane]) * scale, nm = fmaxf(m, d), f = __expf(m - nm), p = __expf(d - nm);
        s = s * f + p;
        acc = acc * f + p * v[j * 32 + lane];
        m = nm;
    }
    o[blockIdx.x * 32 + lane] = acc / s;
}

extern "C" __global__ void conv3x3(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int h, int wd, int channels)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y;
    if (px >= wd) return;
    float acc = 0;
    for (int c = 0; c < channels; c++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                int yy = py + dy, xx = px + dx;
                if (yy >= 0 && yy < h && xx >= 0 && xx < wd) acc += x[(c * h + yy) * wd + xx] * w[c * 9 + (dy + 1) * 3 + dx + 1];
            }
    y[py * wd + px] = acc;
}

extern "C" __global__ void ssm_scan(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c, float *__restrict__ y, int len, int width)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= width) return;
    float h = 0;
    for (int t = 0; t < len; t++) { h = a[t * width + d] * h + b[t * width + d]; y[t * width + d] = h * c[t * width + d]; }
}

extern "C" __global__ void cross_entropy(const float *__restrict__ x, const int *__restrict__ labels, float *__restrict__ loss, int classes)
{
    const float *row = x + (long)blockIdx.x * classes;
    float m = -1e30f, s = 0;
    for (int c = threadIdx.x; c < classes; c += 32) {
        float v = row[c], nm = fmaxf(m, v);
        s = s * __expf(m - nm) + __expf(v - nm); m = nm;
    }
    float all = warp_max(m);
    s = warp_sum(s * __expf(m - all));
    int l = labels[blockIdx.x];
    if (!threadIdx.x) loss[blockIdx.x] = (unsigned)l < (unsigned)classes ? __logf(s) + all - row[l] : 0;
}
