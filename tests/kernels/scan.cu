// Inclusive prefix sums of each block's chunk, and the chunk totals: warp shuffles, then a scan of warp totals.
// blockDim.x is a multiple of 32.
extern "C" __global__ void scan(const int *in, int *out, int *totals, int n)
{
    __shared__ int warp_totals[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int value = i < n ? in[i] : 0;
    for (int step = 1; step < 32; step <<= 1) {
        int other = __shfl_up_sync(0xffffffffu, value, step);
        if (lane >= step)
            value += other;
    }
    if (lane == 31)
        warp_totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int sum = lane < (blockDim.x >> 5) ? warp_totals[lane] : 0;
        for (int step = 1; step < 32; step <<= 1) {
            int other = __shfl_up_sync(0xffffffffu, sum, step);
            if (lane >= step)
                sum += other;
        }
        warp_totals[lane] = sum;
    }
    __syncthreads();
    if (warp > 0)
        value += warp_totals[warp - 1];
    if (i < n)
        out[i] = value;
    if (threadIdx.x == blockDim.x - 1)
        totals[blockIdx.x] = value;
}
