// Population count, leading zeros, first set bit and reversal, 32 and 64 bits.
extern "C" __global__ void bit_count(const unsigned long long *x, int *counts, unsigned int *rev, unsigned long long *rev64, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long v = x[i];
    unsigned int w = (unsigned int)(v >> 16);
    counts[6 * i] = __popc(w);
    counts[6 * i + 1] = __popcll(v);
    counts[6 * i + 2] = __clz((int)w);
    counts[6 * i + 3] = __clzll((long long)v);
    counts[6 * i + 4] = __ffs((int)w);
    counts[6 * i + 5] = __ffsll((long long)v);
    rev[i] = __brev(w);
    rev64[i] = __brevll(v);
}
