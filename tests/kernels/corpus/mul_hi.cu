// High halves of products, a 128-bit product, and multiply-adds of mixed width.
extern "C" __global__ void mul_hi(const unsigned long long *x, const unsigned long long *y, int *ints, unsigned int *uints,
                                  long long *longs, unsigned long long *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long a = x[i], b = y[i];
    ints[2 * i] = __mulhi((int)a, (int)b);
    ints[2 * i + 1] = __mul24((int)a, (int)b);
    uints[i] = __umulhi((unsigned int)a, (unsigned int)b);
    longs[2 * i] = __mul64hi((long long)a, (long long)b);
    longs[2 * i + 1] = (long long)(int)a * (int)b + (long long)b;
    wide[3 * i] = a * b;
    wide[3 * i + 1] = __umul64hi(a, b);
    wide[3 * i + 2] = (unsigned long long)(unsigned int)a * (unsigned int)b + b;
}
