// Dot products of packed bytes and halves, accumulated.
extern "C" __global__ void dot_bytes(const int *x, const int *y, int *out, unsigned int *uout, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[2 * i] = __dp4a(x[i], y[i], i);
    out[2 * i + 1] = __dp2a_lo(x[i], y[i], -i);
    uout[2 * i] = __dp4a((unsigned int)x[i], (unsigned int)y[i], 7u);
    uout[2 * i + 1] = __dp2a_hi((unsigned int)x[i], (unsigned int)y[i], 9u);
}
