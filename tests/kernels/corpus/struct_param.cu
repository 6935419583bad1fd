// A structure by value with mixed alignment, an array in it read at a run-time index, and scalars after it.
struct Setup {
    char tag;
    double scale;
    int table[5];
    short bias;
    unsigned long long mask;
};

extern "C" __global__ void struct_param(char first, Setup setup, const int *x, double *out, unsigned long long *bits, short last, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    int pick = setup.table[(unsigned int)v % 5u];
    out[i] = (double)(v & 0xffff) * setup.scale;
    bits[i] = (setup.mask ^ (unsigned long long)(long long)pick) + setup.tag + first + setup.bias + last;
}
