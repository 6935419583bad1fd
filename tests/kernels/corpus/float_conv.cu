// Conversions between float, double, half and integers in every rounding mode, with the hardware's saturation.
#include <cuda_fp16.h>
extern "C" __global__ void float_conv(const float *x, const double *d, const int *k, const unsigned long long *u, int *ints,
                                      unsigned int *uints, long long *longs, float *floats, double *doubles,
                                      __half *halfs, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    ints[4 * i] = __float2int_rn(v);
    ints[4 * i + 1] = __float2int_rz(v);
    ints[4 * i + 2] = __float2int_rd(v);
    ints[4 * i + 3] = __double2int_ru(d[i]);
    uints[2 * i] = __float2uint_rz(v);
    uints[2 * i + 1] = __double2uint_rn(d[i]);
    longs[2 * i] = __float2ll_rz(v);
    longs[2 * i + 1] = __double2ll_rn(d[i]);
    floats[6 * i] = __int2float_rn(k[i]);
    floats[6 * i + 1] = __uint2float_rz((unsigned int)k[i]);
    floats[6 * i + 2] = __ull2float_rn(u[i]);
    floats[6 * i + 3] = __double2float_rn(d[i]);
    floats[6 * i + 4] = __double2float_rd(d[i]);
    floats[6 * i + 5] = rintf(v) + truncf(v);
    doubles[3 * i] = (double)v;
    doubles[3 * i + 1] = __ll2double_rn((long long)u[i]);
    doubles[3 * i + 2] = floor(d[i]);
    halfs[2 * i] = __float2half_rn(v);
    halfs[2 * i + 1] = __float2half_rz(v);
}
