// Square root, reciprocal, division (exact and fast), reciprocal square root, base-2 logarithm and power.
extern "C" __global__ void f32_special(const float *x, const float *y, float *exact, float *approx, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float a = x[i], b = y[i];
    exact[4 * i] = sqrtf(a);
    exact[4 * i + 1] = a / b;
    exact[4 * i + 2] = 1.0f / b;
    exact[4 * i + 3] = __fsqrt_rz(a);
    approx[4 * i] = rsqrtf(a);
    approx[4 * i + 1] = log2f(a);
    approx[4 * i + 2] = exp2f(b);
    approx[4 * i + 3] = __fdividef(a, b);
}
