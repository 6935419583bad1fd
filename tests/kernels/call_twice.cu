// A device function that is not inlined, called twice with different arguments.
static __device__ __noinline__ unsigned int mix_bits(unsigned int value, unsigned int key, int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        value ^= key;
        value = (value << 7) | (value >> 25);
        value *= 0x85ebca6bu;
        key += value >> 3;
    }
    return value ^ key;
}

extern "C" __global__ void call_twice(const unsigned int *x, unsigned int *out, unsigned int key, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int first = mix_bits(x[i], key, 3);
    unsigned int second = mix_bits(first + i, key ^ first, (x[i] & 3) + 1);
    out[i] = first - second;
}
