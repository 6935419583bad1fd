// Every shuffle kind, 32 and 64 bits, whole warps and segments of 8; n is a multiple of 32.
extern "C" __global__ void shuffles(const int *x, const double *d, int *out, double *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    out[5 * i] = __shfl_sync(0xffffffffu, v, v & 31);
    out[5 * i + 1] = __shfl_up_sync(0xffffffffu, v, 3);
    out[5 * i + 2] = __shfl_down_sync(0xffffffffu, v, 5, 8);
    out[5 * i + 3] = __shfl_xor_sync(0xffffffffu, v, 6, 8);
    out[5 * i + 4] = __shfl_sync(0xffffffffu, v, 9, 8);
    double sum = d[i];
    for (int step = 16; step > 0; step >>= 1)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    wide[i] = sum;
}
