// FFT, small matrices, reductions, transposes, structures by address, doubles.
#include <stdint.h>

extern "C" __global__ void fft8(const float2 *__restrict__ in, float2 *__restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 v[8];
    #pragma unroll
    for (int k = 0; k < 8; k++) v[k] = in[i + k * n];
    #pragma unroll
    for (int s = 4; s; s >>= 1)
        #pragma unroll
        for (int k = 0; k < 8; k++)
            if (!(k & s)) {
                float2 a = v[k], b = v[k | s];
                v[k] = make_float2(a.x + b.x, a.y + b.y);
                float2 d = make_float2(a.x - b.x, a.y - b.y);
                int j = (k & (s - 1)) * (4 / s);
                const float c[4] = {1.0f, 0.70710678f, 0.0f, -0.70710678f}, sn[4] = {0.0f, -0.70710678f, -1.0f, -0.70710678f};
                v[k | s] = make_float2(d.x * c[j] - d.y * sn[j], d.x * sn[j] + d.y * c[j]);
            }
    #pragma unroll
    for (int k = 0; k < 8; k++) out[i * 8 + k] = v[k];
}

extern "C" __global__ void cholesky4(const float *__restrict__ a, float *__restrict__ l, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[16];
    for (int k = 0; k < 16; k++) m[k] = a[i * 16 + k];
    #pragma unroll
    for (int j = 0; j < 4; j++) {
        float d = m[j * 5];
        #pragma unroll
        for (int k = 0; k < j; k++) d -= m[j * 4 + k] * m[j * 4 + k];
        d = sqrtf(fmaxf(d, 1e-6f)); m[j * 5] = d;
        #pragma unroll
        for (int r = j + 1; r < 4; r++) {
            float s = m[r * 4 + j];
            #pragma unroll
            for (int k = 0; k < j; k++) s -= m[r * 4 + k] * m[j * 4 + k];
            m[r * 4 + j] = s / d;
        }
    }
    for (int k = 0; k < 16; k++) l[i * 16 + k] = m[k];
}

extern "C" __global__ void mat3_inverse(const double *__restrict__ a, double *__restrict__ b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double *m = a + (long)i * 9;
    double c0 = m[4] * m[8] - m[5] * m[7], c1 = m[5] * m[6] - m[3] * m[8], c2 = m[3] * m[7] - m[4] * m[6];
    double d = 1.0 / (m[0] * c0 + m[1] * c1 + m[2] * c2);
    double *o = b + (long)i * 9;
    o[0] = c0 * d; o[1] = (m[2] * m[7] - m[1] * m[8]) * d; o[2] = (m[1] * m[5] - m[2] * m[4]) * d;
    o[3] = c1 * d; o[4] = (m[0] * m[8] - m[2] * m[6]) * d; o[5] = (m[2] * m[3] - m[0] * m[5]) * d;
    o[6] = c2 * d; o[7] = (m[1] * m[6] - m[0] * m[7]) * d; o[8] = (m[0] * m[4] - m[1] * m[3]) * d;
}

extern "C" __global__ void transpose32(const float *__restrict__ a, float *__restrict__ b, int w, int h)
{
    __shared__ float t[32][33];
    int x = blockIdx.x * 32 + (threadIdx.x & 31), y0 = blockIdx.y * 32 + (threadIdx.x >> 5);
    for (int k = 0; k < 32; k += 8) if (x < w && y0 + k < h) t[(threadIdx.x >> 5) + k][threadIdx.x & 31] = a[(y0 + k) * w + x];
    __syncthreads();
    int x2 = blockIdx.y * 32 + (threadIdx.x & 31), y2 = blockIdx.x * 32 + (threadIdx.x >> 5);
    for (int k = 0; k < 32; k += 8) if (x2 < h && y2 + k < w) b[(y2 + k) * h + x2] = t[threadIdx.x & 31][(threadIdx.x >> 5) + k];
}

extern "C" __global__ void dot(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ r, int n)
{
    __shared__ double s[256];
    double v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += a[i] * b[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int o = blockDim.x / 2; o; o >>= 1) { if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o]; __syncthreads(); }
    if (!threadIdx.x) r[blockIdx.x] = s[0];
}

extern "C" __global__ void axpy_many(const float *__restrict__ x, float *__restrict__ y, int n, float a)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void polynomial(const float *__restrict__ x, float *__restrict__ y, const float *__restrict__ c, int n, int degree)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], s = 0;
    for (int k = degree; k >= 0; k--) s = s * v + c[k];
    y[i] = s;
}

struct Particle { float x, y, z, vx, vy, vz; int kind, pad; };
__device__ __noinline__ void move(Particle &p, float dt) { p.x += p.vx * dt; p.y += p.vy * dt; p.z += p.vz * dt; if (p.kind & 1) p.vz -= 9.81f * dt; }

extern "C" __global__ void particles(Particle *__restrict__ all, int n, float dt)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = all[i];
    move(p, dt);
    if (p.z < 0) { p.z = -p.z; p.vz = -0.5f * p.vz; }
    all[i] = p;
}

extern "C" __global__ void jacobi(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ x, float *__restrict__ y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < n; j++) if (j != i) s += a[(long)i * n + j] * x[j];
    y[i] = (b[i] - s) / a[(long)i * n + i];
}

extern "C" __global__ void haversine(const float2 *__restrict__ p, float *__restrict__ d, int n, float lat, float lon)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = __sinf((p[i].x - lat) * 0.5f), b = __sinf((p[i].y - lon) * 0.5f);
    d[i] = 12742.0f * asinf(sqrtf(fminf(1.0f, a * a + __cosf(lat) * __cosf(p[i].x) * b * b)));
}

extern "C" __global__ void kmeans(const float *__restrict__ x, const float *__restrict__ c, int *__restrict__ label, int n, int k, int dim)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = 1e30f; int at = 0;
    for (int j = 0; j < k; j++) {
        float s = 0;
        for (int d = 0; d < dim; d++) { float t = x[i * dim + d] - c[j * dim + d]; s += t * t; }
        if (s < best) { best = s; at = j; }
    }
    label[i] = at;
}

extern "C" __global__ void double_sin(const double *__restrict__ x, double *__restrict__ y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sin(x[i]) * exp(-x[i] * x[i]);
}

extern "C" __global__ void dyn_array(const int *__restrict__ in, int *__restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int t[8];
    for (int k = 0; k < 8; k++) t[k] = in[i * 8 + k];
    int s = 0;
    for (int k = 0; k < 8; k++) s = s * 31 + t[(s ^ k) & 7];
    out[i] = s;
}

extern "C" __global__ void matvec_warp(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
    int r = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (r >= rows) return;
    float s = 0;
    for (int c = lane; c < cols; c += 32) s += a[(long)r * cols + c] * x[c];
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
    if (!lane) y[r] = s;
}
