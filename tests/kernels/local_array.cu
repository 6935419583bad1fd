// A private array written and read at indices known only at run time.
extern "C" __global__ void local_array(const int *x, int *out, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int slots[16];
    for (int k = 0; k < 16; ++k)
        slots[k] = k * 0x9e3779b9u;
    unsigned int state = (unsigned int)x[i];
    for (int k = 0; k < rounds; ++k) {
        unsigned int at = state & 15;
        unsigned int value = slots[at];
        slots[(state >> 4) & 15] = value + state;
        state = state * 1664525u + 1013904223u + value;
        state ^= state >> 16;
    }
    unsigned int mix = 0;
    for (int k = 0; k < 16; ++k)
        mix = mix * 31 + slots[k];
    out[i] = (int)mix;
}
