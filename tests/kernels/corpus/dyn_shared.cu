// Dynamic shared memory split in two arrays: the block's chunk reversed, and its running neighbours.
extern "C" __global__ void dyn_shared(const int *x, int *out, short *near, int n)
{
    extern __shared__ int dynamic_words[];
    short *small = (short *)(dynamic_words + blockDim.x);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int last = min((int)blockDim.x, n - (int)(blockIdx.x * blockDim.x)) - 1;
    if (i < n) {
        dynamic_words[threadIdx.x] = x[i];
        small[threadIdx.x] = (short)(x[i] >> 16);
    }
    __syncthreads();
    if (i < n) {
        out[i] = dynamic_words[last - threadIdx.x];
        near[i] = (short)(small[threadIdx.x] - small[threadIdx.x == last ? 0 : threadIdx.x + 1]);
    }
}
