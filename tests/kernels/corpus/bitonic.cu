// Bitonic sort of the block's chunk in shared memory; blockDim.x a power of two, at most 256, n a multiple of it.
extern "C" __global__ void bitonic(int *data, int n)
{
    __shared__ int chunk[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        chunk[threadIdx.x] = data[i];
    __syncthreads();
    for (int size = 2; size <= blockDim.x; size <<= 1) {
        for (int step = size >> 1; step > 0; step >>= 1) {
            int other = threadIdx.x ^ step;
            if (other > threadIdx.x) {
                int a = chunk[threadIdx.x], b = chunk[other];
                bool up = (threadIdx.x & size) == 0;
                if ((a > b) == up) {
                    chunk[threadIdx.x] = b;
                    chunk[other] = a;
                }
            }
            __syncthreads();
        }
    }
    if (i < n)
        data[i] = chunk[threadIdx.x];
}
