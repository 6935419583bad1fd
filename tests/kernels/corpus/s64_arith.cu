// 64-bit sums with carries, comparisons, negation, selection, and a 128-bit sum.
extern "C" __global__ void s64_arith(const unsigned long long *x, const unsigned long long *y, long long *out,
                                     unsigned long long *sum128, int *flags, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long a = x[i], b = y[i];
    long long p = (long long)a, q = (long long)b;
    out[4 * i] = p + q * 3;
    out[4 * i + 1] = p - q;
    out[4 * i + 2] = p < q ? -p : ~q;
    out[4 * i + 3] = (p & q) | (p ^ 0x00ff00ff00ff00ffll);
    unsigned long long low = a + b;
    sum128[2 * i] = low;
    sum128[2 * i + 1] = (a >> 1) + (b >> 1) + (low < a ? 1 : 0);
    flags[i] = (p < q) + 2 * (a < b) + 4 * (p == q) + 8 * (a >= b) + 16 * (p > 0) + 32 * (q != 0);
}
