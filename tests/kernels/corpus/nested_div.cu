// Three levels of data-dependent branches inside two loops, joining at every level.
extern "C" __global__ void nested_div(const int *x, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i], acc = 0;
    for (int a = 0; a < (v & 3) + 1; ++a) {
        if ((v >> a) & 1) {
            for (int b = 0; b <= (threadIdx.x & 3); ++b) {
                if ((v >> (a + b)) & 2)
                    acc += v >> b;
                else if (acc & 4)
                    acc ^= v * (b + 1);
                else
                    acc -= a * 77 + b;
            }
        } else {
            if (v < 0)
                acc = acc * 3 + a;
            else
                acc = (acc << 1) - v;
        }
        acc += 13;
    }
    out[i] = acc;
}
