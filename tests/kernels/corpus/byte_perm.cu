// Byte permutes: swaps, sign spreading, selection at run time.
extern "C" __global__ void byte_perm(const unsigned int *x, const unsigned int *y, unsigned int *swapped, unsigned int *halves,
                                     unsigned int *picked, unsigned long long *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int a = x[i], b = y[i];
    swapped[i] = __byte_perm(a, 0, 0x0123);
    halves[i] = __byte_perm(a, b, 0x5410);
    picked[i] = __byte_perm(a, b, (a ^ b) & 0x7777);
    wide[i] = ((unsigned long long)__byte_perm(a, 0, 0x0123) << 32) | __byte_perm(b, 0, 0x0123);
}
