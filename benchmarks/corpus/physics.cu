// N-body, Monte Carlo, stencils, lattice gas: float arithmetic with plain operators.
#include <stdint.h>

extern "C" __global__ void nbody(const float4 *__restrict__ p, float4 *__restrict__ a, int n, float soft)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float4 tile[64];
    float4 me = i < n ? p[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int base = 0; base < n; base += 64) {
        if (threadIdx.x < 64 && base + threadIdx.x < n) tile[threadIdx.x] = p[base + threadIdx.x];
        __syncthreads();
        int m = min(64, n - base);
        for (int k = 0; k < m; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float r2 = dx * dx + dy * dy + dz * dz + soft;
            float inv = rsqrtf(r2);
            float s = tile[k].w * inv * inv * inv;
            ax += dx * s; ay += dy * s; az += dz * s;
        }
        __syncthreads();
    }
    if (i < n) a[i] = make_float4(ax, ay, az, 0);
}

extern "C" __global__ void monte_carlo(uint32_t *__restrict__ out, const uint32_t *__restrict__ seeds, int n, int trials)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t s = seeds[i] | 1, hits = 0;
    for (int t = 0; t < trials; t++) {
        s ^= s << 13; s ^= s >> 17; s ^= s << 5;
        float x = (s >> 8) * (1.0f / 16777216.0f);
        s ^= s << 13; s ^= s >> 17; s ^= s << 5;
        float y = (s >> 8) * (1.0f / 16777216.0f);
        if (x * x + y * y < 1.0f) hits++;
    }
    out[i] = hits;
}

extern "C" __global__ void stencil5(const float *__restrict__ a, float *__restrict__ b, int w, int h, float c0, float c1)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int i = y * w + x;
    b[i] = c0 * a[i] + c1 * (a[i - 1] + a[i + 1] + a[i - w] + a[i + w]);
}

extern "C" __global__ void stencil7(const double *__restrict__ a, double *__restrict__ b, int w, int h, int d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    long plane = (long)w * h;
    double below = a[(long)y * w + x], here = a[plane + (long)y * w + x];
    for (int z = 1; z < d - 1; z++) {
        long i = z * plane + (long)y * w + x;
        double above = a[i + plane];
        b[i] = 0.4 * here + 0.1 * (a[i - 1] + a[i + 1] + a[i - w] + a[i + w] + above + below);
        below = here; here = above;
    }
}

extern "C" __global__ void lennard_jones(const float *__restrict__ x, const int *__restrict__ neighbours, const int *__restrict__ counts,
                                         float *__restrict__ force, int n, int most, float cut2)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float px = x[3 * i], py = x[3 * i + 1], pz = x[3 * i + 2], fx = 0, fy = 0, fz = 0;
    int m = min(counts[i], most);
    for (int k = 0; k < m; k++) {
        int j = neighbours[k * n + i];
        if ((unsigned)j >= (unsigned)n) continue;
        float dx = px - x[3 * j], dy = py - x[3 * j + 1], dz = pz - x[3 * j + 2];
        float r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < cut2 && r2 > 0) {
            float i2 = 1.0f / r2, i6 = i2 * i2 * i2, f = 48.0f * i2 * i6 * (i6 - 0.5f);
            fx += f * dx; fy += f * dy; fz += f * dz;
        }
    }
    force[3 * i] = fx; force[3 * i + 1] = fy; force[3 * i + 2] = fz;
}

extern "C" __global__ void heat_loop(float *__restrict__ u, const float *__restrict__ k, int n, int steps)
{
    __shared__ float s[2][130];
    int i = threadIdx.x, g = blockIdx.x * 128 + i;
    float v = g < n ? u[g] : 0.0f, kk = g < n ? k[g] : 0.0f;
    s[0][i + 1] = v;
    if (i == 0) { s[0][0] = v; s[1][0] = v; }
    if (i == 127) { s[0][129] = v; s[1][129] = v; }
    __syncthreads();
    for (int t = 0; t < steps; t++) {
        int p = t & 1;
        v = s[p][i + 1] + kk * (s[p][i] - 2.0f * s[p][i + 1] + s[p][i + 2]);
        s[1 - p][i + 1] = v;
        __syncthreads();
    }
    if (g < n) u[g] = v;
}

extern "C" __global__ void black_scholes(const float *__restrict__ S, const float *__restrict__ X, const float *__restrict__ T,
                                         float *__restrict__ call, float *__restrict__ put, int n, float r, float v)
{
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        float sq = sqrtf(T[i]), d1 = (__logf(S[i] / X[i]) + (r + 0.5f * v * v) * T[i]) / (v * sq), d2 = d1 - v * sq;
        float k1 = 1.0f / (1.0f + 0.2316419f * fabsf(d1)), k2 = 1.0f / (1.0f + 0.2316419f * fabsf(d2));
        float c1 = 0.39894228f * __expf(-0.5f * d1 * d1) * k1 * (0.31938153f + k1 * (-0.356563782f + k1 * (1.781477937f + k1 * (-1.821255978f + k1 * 1.330274429f))));
        float c2 = 0.39894228f * __expf(-0.5f * d2 * d2) * k2 * (0.31938153f + k2 * (-0.356563782f + k2 * (1.781477937f + k2 * (-1.821255978f + k2 * 1.330274429f))));
        if (d1 > 0) c1 = 1.0f - c1;
        if (d2 > 0) c2 = 1.0f - c2;
        float e = __expf(-r * T[i]);
        call[i] = S[i] * c1 - X[i] * e * c2;
        put[i] = X[i] * e * (1.0f - c2) - S[i] * (1.0f - c1);
    }
}

extern "C" __global__ void rk4(float *__restrict__ y, const float *__restrict__ mu, int n, int steps, float h)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = y[2 * i], b = y[2 * i + 1], m = mu[i];
    for (int s = 0; s < steps; s++) {
        float k1a = b, k1b = m * (1 - a * a) * b - a;
        float xa = a + 0.5f * h * k1a, xb = b + 0.5f * h * k1b;
        float k2a = xb, k2b = m * (1 - xa * xa) * xb - xa;
        xa = a + 0.5f * h * k2a; xb = b + 0.5f * h * k2b;
        float k3a = xb, k3b = m * (1 - xa * xa) * xb - xa;
        xa = a + h * k3a; xb = b + h * k3b;
        float k4a = xb, k4b = m * (1 - xa * xa) * xb - xa;
        a += h / 6 * (k1a + 2 * k2a + 2 * k3a + k4a);
        b += h / 6 * (k1b + 2 * k2b + 2 * k3b + k4b);
    }
    y[2 * i] = a; y[2 * i + 1] = b;
}
