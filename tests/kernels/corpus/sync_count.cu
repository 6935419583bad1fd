// Barriers that count, and, or over the block; every thread reaches them.
extern "C" __global__ void sync_count(const int *x, int *counts, int *flags, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    int odd = __syncthreads_count(v & 1);
    int all = __syncthreads_and(v >= 0);
    int some = __syncthreads_or(v == 12345);
    if (i < n) {
        counts[i] = odd;
        flags[i] = (all ? 1 : 0) + (some ? 2 : 0);
    }
}
