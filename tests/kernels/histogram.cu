// Histogram of n bytes in 256 bins: counts in shared memory, then added to the global bins.
extern "C" __global__ void histogram(const unsigned char *data, unsigned int *bins, int n)
{
    __shared__ unsigned int local_bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        local_bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local_bins[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (local_bins[i] != 0)
            atomicAdd(&bins[i], local_bins[i]);
}
