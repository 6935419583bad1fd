// Functions that are not inlined: many arguments, 64-bit and double ones, a pointer, a returned structure, nesting.
struct Pair {
    long long sum;
    double product;
};

static __device__ __noinline__ Pair combine(int a, long long b, double c, unsigned short d, const int *table)
{
    Pair r;
    r.sum = a + b * table[d & 3];
    r.product = c * d;
    return r;
}

static __device__ __noinline__ long long twice(int a, const int *table, double *spill)
{
    Pair p = combine(a, 3, 0.5, (unsigned short)a, table);
    Pair q = combine(a + 1, p.sum, p.product, 7, table);
    *spill = q.product;
    return q.sum - p.sum;
}

extern "C" __global__ void call_args(const int *x, const int *table, long long *sums, double *products, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double kept;
    sums[i] = twice(x[i], table, &kept);
    products[i] = kept;
}
