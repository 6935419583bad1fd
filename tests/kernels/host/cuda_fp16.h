// Half precision for the host: the compiler's _Float16, the fused operation through a 113-bit format.
#pragma once
#include "cuda_shim.h"

typedef _Float16 __half;
struct __half2 { __half x, y; };

#define SHIM_HALF2(name, expression)                                                                                   \
    static __half2 name(__half2 a, __half2 b)                                                                          \
    {                                                                                                                  \
        auto one = [](double p, double q) { return (__half)(expression); };                                            \
        return {one((double)a.x, (double)b.x), one((double)a.y, (double)b.y)};                                         \
    }
SHIM_HALF2(__hadd2, p + q)
SHIM_HALF2(__hsub2, p - q)
SHIM_HALF2(__hmul2, p *q)
SHIM_HALF2(__hgt2, p > q ? 1.0 : 0.0)
static __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    return {(__half)((__float128)a.x * b.x + c.x), (__half)((__float128)a.y * b.y + c.y)};
}
static float __low2float(__half2 v) { return (float)v.x; }
static float __high2float(__half2 v) { return (float)v.y; }
static __half __float2half_rn(float v) { return (__half)v; }
static __half __float2half_rz(float v)
{
    __half near = (__half)v;
    if (std::fabs((float)near) > std::fabs(v))
        near = shim_bits<__half>((unsigned short)(shim_bits<unsigned short>(near) - 1));
    return near;
}
