// Funnel shifts, wrapping and clamping, and 32-bit rotations.
extern "C" __global__ void funnel(const unsigned int *x, const unsigned int *y, const unsigned int *s, unsigned int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int lo = x[i], hi = y[i], k = s[i];
    out[6 * i] = __funnelshift_l(lo, hi, k);
    out[6 * i + 1] = __funnelshift_r(lo, hi, k);
    out[6 * i + 2] = __funnelshift_lc(lo, hi, k);
    out[6 * i + 3] = __funnelshift_rc(lo, hi, k);
    out[6 * i + 4] = (lo << 11) | (lo >> 21);
    out[6 * i + 5] = __funnelshift_l(hi, hi, 27);
}
