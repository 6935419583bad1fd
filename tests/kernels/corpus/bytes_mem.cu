// Loads and stores of 8 and 16 bits, signed and unsigned, with wrapping arithmetic.
extern "C" __global__ void bytes_mem(const unsigned char *ub, const signed char *sb, const unsigned short *uh, const short *sh,
                                     unsigned char *oub, signed char *osb, unsigned short *ouh, short *osh, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int a = ub[i], b = sb[i], c = uh[i], d = sh[i];
    oub[i] = (unsigned char)(a + b);
    osb[i] = (signed char)(b * 3 - a);
    ouh[i] = (unsigned short)(c * d);
    osh[i] = (short)((d >> 2) + (c >> 1) - b);
}
