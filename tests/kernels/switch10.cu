// A dense switch of ten cases, each doing something else.
extern "C" __global__ void switch10(const int *op, const int *x, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i], r;
    switch (op[i]) {
    case 0: r = v + 17; break;
    case 1: r = v * 29; break;
    case 2: r = v ^ 0x5a5a5a5a; break;
    case 3: r = v >> 3; break;
    case 4: r = (int)((unsigned)v >> 5); break;
    case 5: r = v < 0 ? -v : v; break;
    case 6: for (r = 0; v != 0; v &= v - 1) ++r; break;
    case 7: r = v / 7; break;
    case 8: r = v % 10; break;
    case 9: r = out[i] - v; break;
    default: r = -1; break;
    }
    out[i] = r;
}
