// Packed half arithmetic: sum, difference, product, fused multiply-add, maximum, and a comparison mask.
#include <cuda_fp16.h>
extern "C" __global__ void half2_ops(const __half2 *a, const __half2 *b, const __half2 *c, __half2 *sum, __half2 *diff,
                                     __half2 *prod, __half2 *fused, __half2 *larger, float *low, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half2 x = a[i], y = b[i], z = c[i];
    sum[i] = __hadd2(x, y);
    diff[i] = __hsub2(x, y);
    prod[i] = __hmul2(x, y);
    __half2 f = __hfma2(x, y, z);
    fused[i] = f;
    larger[i] = __hgt2(x, y);
    low[i] = __low2float(f) + __high2float(z);
}
