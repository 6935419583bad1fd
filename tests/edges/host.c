/* Arithmetic of the host in every rounding mode: 0 nearest, 1 towards zero, 2 down, 3 up. Compiled without contraction and with -frounding-math. */
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static const int modes[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

#define ARITHMETIC(name, T, U, FMA, SQRT, RINT)                                                                                   \
    uint64_t name(int op, int mode, uint64_t ai, uint64_t bi, uint64_t ci)                                                          \
    {                                                                                                                               \
        U ua = (U)ai, ub = (U)bi, uc = (U)ci, ur;                                                                                   \
        volatile T a, b, c, r = 0;                                                                                                  \
        memcpy((void *)&a, &ua, sizeof a);                                                                                          \
        memcpy((void *)&b, &ub, sizeof b);                                                                                          \
        memcpy((void *)&c, &uc, sizeof c);                                                                                          \
        fesetround(modes[mode]);                                                                                                    \
        switch (op) {                                                                                                               \
        case 0: r = a + b; break;                                                                                                   \
        case 1: r = a - b; break;                                                                                                   \
        case 2: r = a * b; break;                                                                                                   \
        case 3: r = FMA(a, b, c); break;                                                                                            \
        case 4: r = a / b; break;                                                                                                   \
        case 5: r = SQRT(a); break;                                                                                                 \
        case 6: r = RINT(a); break;                                                                                                 \
        }                                                                                                                           \
        fesetround(FE_TONEAREST);                                                                                                   \
        memcpy(&ur, (void *)&r, sizeof r);                                                                                          \
        return ur;                                                                                                                  \
    }

ARITHMETIC(f32_op, float, uint32_t, fmaf, sqrtf, rintf)
ARITHMETIC(f64_op, double, uint64_t, fma, sqrt, rint)

/* Conversions: 0 f64 to f32, 1 and 2 signed integer to f32 and f64, 3 and 4 unsigned, 5 f32 to f64. */
uint64_t convert(int op, int mode, uint64_t x)
{
    volatile double d;
    volatile float f = 0;
    uint32_t low = (uint32_t)x;
    memcpy((void *)&d, &x, 8);
    fesetround(modes[mode]);
    switch (op) {
    case 0: f = (float)d; break;
    case 1: f = (float)(int64_t)x; break;
    case 2: d = (double)(int64_t)x; break;
    case 3: f = (float)x; break;
    case 4: d = (double)x; break;
    case 5: memcpy((void *)&f, &low, 4); d = f; break;
    }
    fesetround(FE_TONEAREST);
    uint64_t out = 0;
    if (op == 2 || op == 4 || op == 5)
        memcpy(&out, (void *)&d, 8);
    else
        memcpy(&out, (void *)&f, 4);
    return out;
}
