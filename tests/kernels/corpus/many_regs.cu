// Twenty-four running values kept through a loop: wants many registers.
extern "C" __global__ void many_regs(const unsigned int *x, unsigned int *out, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int v[24];
#pragma unroll
    for (int k = 0; k < 24; ++k)
        v[k] = x[i] + k * 2654435769u;
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 24; ++k)
            v[k] = v[k] * 1664525u + (v[(k + 7) % 24] ^ (unsigned int)r);
    }
    unsigned int mix = 0;
#pragma unroll
    for (int k = 0; k < 24; ++k)
        mix = (mix ^ v[k]) * 16777619u;
    out[i] = mix;
}
