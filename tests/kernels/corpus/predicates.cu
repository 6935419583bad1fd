// Boolean formulas of float and integer comparisons, ordered and unordered, stored as bits.
extern "C" __global__ void predicates(const float *x, const float *y, const int *k, unsigned int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float a = x[i], b = y[i];
    int c = k[i];
    bool less = a < b, equal = a == b, unordered = !(a < b) && !(a >= b), big = c > 100, odd = c & 1;
    unsigned int bits = 0;
    bits |= less ? 1 : 0;
    bits |= (equal || (less && odd)) ? 2 : 0;
    bits |= (unordered != big) ? 4 : 0;
    bits |= (!(a <= b) && (big || !odd)) ? 8 : 0;
    bits |= (a != a || (c < -5 && b > 0.0f)) ? 16 : 0;
    bits |= ((less ^ odd) & (equal | big)) ? 32 : 0;
    bits |= isinf(a) ? 64 : 0;
    bits |= signbit(b) ? 128 : 0;
    out[i] = bits;
}
