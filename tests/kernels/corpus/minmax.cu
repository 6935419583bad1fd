// Minimum, maximum, absolute value and clamping of every type.
extern "C" __global__ void minmax(const int *a, const int *b, const float *x, const float *y, int *ints, unsigned int *uints,
                                  long long *longs, float *floats, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int p = a[i], q = b[i];
    ints[4 * i] = min(p, q);
    ints[4 * i + 1] = max(p, q);
    ints[4 * i + 2] = abs(p);
    ints[4 * i + 3] = max(-100, min(p, 100));
    uints[2 * i] = min((unsigned int)p, (unsigned int)q);
    uints[2 * i + 1] = max((unsigned int)p, (unsigned int)q);
    long long r = (long long)p * q, s = (long long)p << 20;
    longs[3 * i] = min(r, s);
    longs[3 * i + 1] = max(r, s);
    longs[3 * i + 2] = r < 0 ? -r : r;
    float u = x[i], v = y[i];
    floats[5 * i] = fminf(u, v);
    floats[5 * i + 1] = fmaxf(u, v);
    floats[5 * i + 2] = fabsf(u);
    floats[5 * i + 3] = __saturatef(u);
    floats[5 * i + 4] = copysignf(u, v);
}
