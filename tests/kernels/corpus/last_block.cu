// The last block to finish sums the others' results: fences, a counter, volatile loads.
__device__ unsigned int lb_done;

extern "C" __global__ void last_block(const int *x, volatile int *parts, int *total, int n)
{
    __shared__ int sums[128];
    __shared__ bool last;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step >>= 1) {
        if (threadIdx.x < step)
            sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sums[0];
        __threadfence();
        unsigned int before = atomicAdd(&lb_done, 1u);
        last = before == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (int k = 0; k < gridDim.x; ++k)
            sum += parts[k];
        *total = sum;
        lb_done = 0;
    }
}
