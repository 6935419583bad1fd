// 32-bit division and remainder by variables and constants, signed, unsigned and 16 bits.
extern "C" __global__ void div32(const int *x, const int *y, int *out, unsigned int *uout, unsigned short *small, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int a = x[i], b = y[i];
    unsigned int ua = (unsigned int)a, ub = (unsigned int)b;
    out[4 * i] = a / b;
    out[4 * i + 1] = a % b;
    out[4 * i + 2] = a / -13;
    out[4 * i + 3] = a % 4096;
    uout[4 * i] = ua / ub;
    uout[4 * i + 1] = ua % ub;
    uout[4 * i + 2] = ua / 641u;
    uout[4 * i + 3] = ua % 1000000007u;
    unsigned short sa = (unsigned short)ua, sb = (unsigned short)(ub | 1);
    small[i] = (unsigned short)(sa / sb + sa % sb);
}
