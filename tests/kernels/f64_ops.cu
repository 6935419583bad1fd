// Double fma, division and square root, each to its own array.
extern "C" __global__ void f64_ops(const double *a, const double *b, const double *c, double *out_fma, double *out_div,
                                   double *out_sqrt, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double x = a[i], y = b[i];
    out_fma[i] = fma(x, y, c[i]);
    out_div[i] = x / y;
    out_sqrt[i] = sqrt(x);
}
