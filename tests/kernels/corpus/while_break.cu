// Collatz-like loops left by break, skipped by continue, with a do-while inside.
extern "C" __global__ void while_break(const unsigned int *x, unsigned int *out, int n, unsigned int limit)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int v = x[i], steps = 0;
    while (true) {
        if (v <= 1)
            break;
        if (++steps > limit)
            break;
        if (v & 1) {
            v = v * 3 + 1;
            continue;
        }
        do {
            v >>= 1;
        } while (!(v & 1) && v);
        if (v % 11 == 5)
            steps += 100;
    }
    out[i] = steps * 65536u + (v & 0xffffu);
}
