// 64-bit quotient and remainder, unsigned and signed, of the same bits.
extern "C" __global__ void divrem64(const unsigned long long *a, const unsigned long long *b, unsigned long long *uq,
                                    unsigned long long *ur, long long *sq, long long *sr, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long ua = a[i], ub = b[i];
    long long sa = (long long)ua, sb = (long long)ub;
    uq[i] = ua / ub;
    ur[i] = ua % ub;
    sq[i] = sa / sb;
    sr[i] = sa % sb;
}
