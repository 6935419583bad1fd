// Bit fields of a word read, changed and written back, with C bit fields and with masks at variable places.
struct Packed {
    unsigned int a : 5;
    int b : 7;
    unsigned int c : 12;
    int d : 8;
};

extern "C" __global__ void bitfield(const unsigned int *x, unsigned int *packed, int *sums, unsigned int *moved, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    union { unsigned int word; Packed f; } u;
    u.word = x[i];
    sums[i] = (int)u.f.a + u.f.b + (int)u.f.c + u.f.d;
    u.f.a += 3;
    u.f.b = -u.f.b;
    u.f.c ^= 0x5a5;
    u.f.d >>= 1;
    packed[i] = u.word;
    int at = x[i] & 15, len = ((x[i] >> 4) & 15) + 1;
    unsigned int field = (x[i] >> at) & ((1u << len) - 1u);
    moved[i] = (x[i] & ~(((1u << len) - 1u) << (16 - at))) | (field << (16 - at));
}
