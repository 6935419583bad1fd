// Tables in constant memory (one set by the host, one with an initialiser), a global table and a global counter.
__constant__ float cg_weights[16];
__constant__ int cg_offsets[8] = {3, -1, 4, -1, 5, -9, 2, -6};
__device__ unsigned int cg_counter;
__device__ int cg_primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};

extern "C" __global__ void const_global(const int *index, float *out, int *sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int k = index[i];
    out[i] = cg_weights[k & 15] + cg_weights[3];
    sums[i] = cg_offsets[k & 7] * cg_primes[(k >> 3) & 7] + cg_offsets[2];
    if (k < 0)
        atomicAdd(&cg_counter, 1u);
}
