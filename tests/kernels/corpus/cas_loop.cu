// Compare-and-swap loops on shared and global words: a float maximum and a saturating counter; n a multiple of the block.
extern "C" __global__ void cas_loop(const float *x, unsigned int *largest, int *counter, int top, int n)
{
    __shared__ unsigned int best;
    if (threadIdx.x == 0)
        best = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = fabsf(x[i]);
        unsigned int old = best;
        while (__uint_as_float(old) < v) {
            unsigned int seen = atomicCAS(&best, old, __float_as_uint(v));
            if (seen == old)
                break;
            old = seen;
        }
        int now = *(volatile int *)counter;
        while (now < top) {
            int seen = atomicCAS(counter, now, now + 1);
            if (seen == now)
                break;
            now = seen;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        atomicMax(largest, best);
}
