// 64-bit shifts and rotations by variable and constant amounts below 64.
extern "C" __global__ void shift64(const unsigned long long *x, const int *amount, unsigned long long *left,
                                   unsigned long long *right, long long *arith, unsigned long long *rotated,
                                   unsigned long long *fixed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long v = x[i];
    int s = amount[i] & 63;
    left[i] = v << s;
    right[i] = v >> s;
    arith[i] = (long long)v >> s;
    rotated[i] = (v << s) | (v >> ((64 - s) & 63));
    fixed[i] = (v << 13) ^ (v >> 40) ^ (unsigned long long)((long long)v >> 63);
}
