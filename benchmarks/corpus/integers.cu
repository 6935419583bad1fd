// Hashing, cryptography, sorting, sparse and graph work, strings, dynamic programming, images.
#include <stdint.h>

__constant__ uint32_t K256[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967};

__device__ uint32_t rotr(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }
__device__ uint32_t rotl(uint32_t x, int n) { return (x << n) | (x >> (32 - n)); }

extern "C" __global__ void sha_rounds(const uint32_t *__restrict__ msg, uint32_t *__restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t w[16], a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a, e = 0x510e527f, f = 0x9b05688c, g = 0x1f83d9ab, h = 0x5be0cd19;
    #pragma unroll
    for (int k = 0; k < 16; k++) w[k] = msg[i * 16 + k];
    #pragma unroll
    for (int k = 0; k < 32; k++) {
        if (k >= 16) {
            uint32_t x = w[(k + 1) & 15], y = w[(k + 14) & 15];
            w[k & 15] += (rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3)) + w[(k + 9) & 15] + (rotr(y, 17) ^ rotr(y, 19) ^ (y >> 10));
        }
        uint32_t t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + K256[k] + w[k & 15];
        uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g; g = f; f = e; e = d + t1; d = c; c = b; b = a; a = t1 + t2;
    }
    out[i * 2] = a + c + e + g; out[i * 2 + 1] = b ^ d ^ f ^ h;
}

extern "C" __global__ void chacha_block(const uint32_t *__restrict__ key, uint32_t *__restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t x[16];
    #pragma unroll
    for (int k = 0; k < 16; k++) x[k] = key[k] + (k == 12 ? i : 0);
#define QR(a, b, c, d) a += b; d = rotl(d ^ a, 16); c += d; b = rotl(b ^ c, 12); a += b; d = rotl(d ^ a, 8); c += d; b = rotl(b ^ c, 7);
    for (int r = 0; r < 10; r++) {
        QR(x[0], x[4], x[8], x[12]) QR(x[1], x[5], x[9], x[13]) QR(x[2], x[6], x[10], x[14]) QR(x[3], x[7], x[11], x[15])
        QR(x[0], x[5], x[10], x[15]) QR(x[1], x[6], x[11], x[12]) QR(x[2], x[7], x[8], x[13]) QR(x[3], x[4], x[9], x[14])
    }
    #pragma unroll
    for (int k = 0; k < 16; k++) out[i * 16 + k] = x[k] + key[k];
}

extern "C" __global__ void mod_mul(const uint64_t *__restrict__ a, const uint64_t *__restrict__ b, uint64_t *__restrict__ c, int n, uint64_t p)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 t = (unsigned __int128)a[i] * b[i];
    uint64_t lo = (uint64_t)t, hi = (uint64_t)(t >> 64), q = lo * 0x9E3779B97F4A7C15ull;
    uint64_t m = (uint64_t)(((unsigned __int128)q * p) >> 64);
    uint64_t r = hi - m;
    c[i] = hi < m ? r + p : r;
}

extern "C" __global__ void big_add(const uint32_t *__restrict__ a, const uint32_t *__restrict__ b, uint32_t *__restrict__ c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t carry = 0;
    #pragma unroll
    for (int k = 0; k < 8; k++) {
        uint64_t s = (uint64_t)a[i * 8 + k] + b[i * 8 + k] + carry;
        c[i * 8 + k] = (uint32_t)s; carry = s >> 32;
    }
}

extern "C" __global__ void murmur(const uint8_t *__restrict__ data, uint32_t *__restrict__ out, int n, int len)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint32_t *p = (const uint32_t *)(data + (long)i * len);
    uint32_t h = i;
    for (int k = 0; k < len / 4; k++) { uint32_t v = p[k] * 0xcc9e2d51u; v = rotl(v, 15) * 0x1b873593u; h = rotl(h ^ v, 13) * 5 + 0xe6546b64u; }
    h ^= len; h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
    out[i] = h;
}

extern "C" __global__ void crc32(const uint8_t *__restrict__ data, uint32_t *__restrict__ out, int n, int len)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t c = ~0u;
    for (int k = 0; k < len; k++) {
        c ^= data[(long)i * len + k];
        for (int b = 0; b < 8; b++) c = (c >> 1) ^ (c & 1 ? 0xEDB88320u : 0);
    }
    out[i] = ~c;
}

extern "C" __global__ void bitonic_step(uint32_t *__restrict__ a, int n, int j, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, l = i ^ j;
    if (l > i && l < n && i < n) {
        uint32_t x = a[i], y = a[l];
        if (((i & k) == 0) == (x > y)) { a[i] = y; a[l] = x; }
    }
}

extern "C" __global__ void odd_even_sort(int *__restrict__ a, int n)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = t < n ? a[blockIdx.x * 256 + t] : 0x7fffffff;
    __syncthreads();
    for (int r = 0; r < 16; r++) {
        int at = 2 * t + (r & 1);
        if (at + 1 < 256) { int x = s[at], y = s[at + 1]; if (x > y) { s[at] = y; s[at + 1] = x; } }
        __syncthreads();
    }
    if (t < n) a[blockIdx.x * 256 + t] = s[t];
}

extern "C" __global__ void insertion_sort(int *__restrict__ a, int n, int each)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int *p = a + (long)i * each;
    for (int k = 1; k < each; k++) {
        int v = p[k], j = k - 1;
        while (j >= 0 && p[j] > v) { p[j + 1] = p[j]; j--; }
        p[j + 1] = v;
    }
}

extern "C" __global__ void spmv_csr(const int *__restrict__ start, const int *__restrict__ col, const float *__restrict__ val, const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0;
    int from = max(0, min(start[r], 64)), to = max(0, min(start[r + 1], 64));
    for (int k = from; k < to; k++) { int c = col[k]; if ((unsigned)c < (unsigned)cols) s += val[k] * x[c]; }
    y[r] = s;
}

extern "C" __global__ void bfs_level(const int *__restrict__ start, const int *__restrict__ edge, int *__restrict__ level, int *__restrict__ changed, int n, int depth)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || level[v] != depth) return;
    for (int e = max(0, start[v]); e < min(start[v + 1], n); e++) {
        int u = edge[e];
        if (u >= 0 && u < n && level[u] < 0) { level[u] = depth + 1; *changed = 1; }
    }
}

extern "C" __global__ void levenshtein(const uint8_t *__restrict__ a, const uint8_t *__restrict__ b, int *__restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int row[9];
    #pragma unroll
    for (int k = 0; k < 9; k++) row[k] = k;
    for (int y = 0; y < 8; y++) {
        int diag = row[0]; row[0] = y + 1;
        uint8_t c = b[i * 8 + y];
        #pragma unroll
        for (int x = 0; x < 8; x++) {
            int cost = diag + (a[i * 8 + x] != c);
            diag = row[x + 1];
            row[x + 1] = min(cost, min(row[x], diag) + 1);
        }
    }
    out[i] = row[8];
}

extern "C" __global__ void smith_waterman(const int8_t *__restrict__ a, const int8_t *__restrict__ b, int *__restrict__ best, int n, int la, int lb)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int h[16], top = 0;
    for (int k = 0; k < 16; k++) h[k] = 0;
    for (int y = 0; y < lb; y++) {
        int diag = 0, left = 0;
        #pragma unroll
        for (int x = 0; x < 16; x++) {
            if (x < la) {
                int s = diag + (a[i * 16 + x] == b[y] ? 3 : -2);
                int v = max(max(0, s), max(left, h[x]) - 1);
                diag = h[x]; h[x] = v; left = v; top = max(top, v);
            }
        }
    }
    best[i] = top;
}

extern "C" __global__ void sobel(const uint8_t *__restrict__ in, uint8_t *__restrict__ out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x <= 0 || y <= 0 || x >= w - 1 || y >= h - 1) return;
    const uint8_t *p = in + y * w + x;
    int gx = p[1 - w] + 2 * p[1] + p[1 + w] - p[-1 - w] - 2 * p[-1] - p[-1 + w];
    int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[-w + 1];
    int m = abs(gx) + abs(gy);
    out[y * w + x] = m > 255 ? 255 : m;
}

extern "C" __global__ void rgb_to_gray(const uchar4 *__restrict__ in, uint8_t *__restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { uchar4 c = in[i]; out[i] = (uint8_t)((77 * c.x + 150 * c.y + 29 * c.z + 128) >> 8); }
}

extern "C" __global__ void bilinear(const float *__restrict__ in, float *__restrict__ out, int w, int h, float sx, float sy, int ow, int oh)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= ow || y >= oh) return;
    float fx = fminf(fmaxf(x * sx, 0.0f), w - 1.001f), fy = fminf(fmaxf(y * sy, 0.0f), h - 1.001f);
    int x0 = max(0, min((int)fx, w - 2)), y0 = max(0, min((int)fy, h - 2));
    float a = fx - x0, b = fy - y0;
    const float *p = in + y0 * w + x0;
    out[y * ow + x] = (1 - b) * ((1 - a) * p[0] + a * p[1]) + b * ((1 - a) * p[w] + a * p[w + 1]);
}

extern "C" __global__ void histogram(const uint8_t *__restrict__ data, uint32_t *__restrict__ bins, int n)
{
    __shared__ uint32_t s[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) s[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[data[i]], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += blockDim.x) if (s[k]) atomicAdd(&bins[k], s[k]);
}

extern "C" __global__ void block_scan(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, int n)
{
    __shared__ uint32_t s[8];
    int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31, w = threadIdx.x >> 5;
    uint32_t v = i < n ? in[i] : 0, x = v;
    for (int o = 1; o < 32; o <<= 1) { uint32_t y = __shfl_up_sync(~0u, x, o); if (lane >= o) x += y; }
    if (lane == 31) s[w] = x;
    __syncthreads();
    uint32_t add = 0;
    for (int k = 0; k < w; k++) add += s[k];
    if (i < n) out[i] = x + add - v;
}

extern "C" __global__ void compact(const int *__restrict__ in, int *__restrict__ out, int *__restrict__ count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = i < n && in[i] > 0;
    unsigned mask = __ballot_sync(~0u, keep);
    int base = 0;
    if (lane == 0 && mask) base = atomicAdd(count, __popc(mask));
    base = __shfl_sync(~0u, base, 0);
    int at = base + __popc(mask & ((1u << lane) - 1));
    if (keep && at >= 0 && at < n) out[at] = in[i];
}

extern "C" __global__ void state_machine(const uint8_t *__restrict__ text, int *__restrict__ tokens, int n, int len)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int state = 0, count = 0, depth = 0;
    for (int k = 0; k < len; k++) {
        switch (text[(long)i * len + k] & 15) {
        case 0: state = 0; break;
        case 1: if (state == 0) count++; state = 1; break;
        case 2: depth++; state = 2; break;
        case 3: if (depth) depth--; state = 3; break;
        case 4: count += 2; break;
        case 5: state ^= 1; break;
        case 6: count ^= depth; state = 6; break;
        case 7: count -= state; break;
        default: state = 4;
        }
    }
    tokens[i] = count * 8 + state + (depth << 20);
}

extern "C" __global__ void game_of_life(const uint8_t *__restrict__ a, uint8_t *__restrict__ b, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
    int xl = x ? x - 1 : w - 1, xr = x + 1 == w ? 0 : x + 1, yu = y ? y - 1 : h - 1, yd = y + 1 == h ? 0 : y + 1;
    int s = a[yu * w + xl] + a[yu * w + x] + a[yu * w + xr] + a[y * w + xl] + a[y * w + xr] + a[yd * w + xl] + a[yd * w + x] + a[yd * w + xr];
    b[y * w + x] = s == 3 || (s == 2 && a[y * w + x]);
}

extern "C" __global__ void knapsack(const int *__restrict__ weight, const int *__restrict__ value, int *__restrict__ best, int items, int cap)
{
    __shared__ int t[2][129];
    for (int c = threadIdx.x; c <= 128; c += blockDim.x) t[0][c] = 0;
    __syncthreads();
    int p = 0;
    for (int k = 0; k < items; k++) {
        int w = weight[k] & 63, v = value[k];
        for (int c = threadIdx.x; c <= 128; c += blockDim.x) t[1 - p][c] = max(t[p][c], c >= w ? t[p][c - w] + v : 0);
        p = 1 - p;
        __syncthreads();
    }
    if (threadIdx.x == 0 && cap >= 0 && cap <= 128) best[blockIdx.x] = t[p][cap];
}

extern "C" __global__ void gcd_loop(const uint32_t *__restrict__ a, const uint32_t *__restrict__ b, uint32_t *__restrict__ g, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t x = a[i] & 0xffff, y = b[i] & 0xffff;
    while (y) { uint32_t t = x % y; x = y; y = t; }
    g[i] = x;
}
