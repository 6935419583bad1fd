// An array of structures in constant memory, read at run-time indices, and a constant pointer-sized value.
struct Rule {
    int add;
    unsigned char shift;
    signed char sign;
    unsigned short mask;
    long long big;
};

__constant__ Rule cs_rules[6] = {{1, 2, -1, 0xff, 5000000000ll}, {-7, 0, 1, 0xffff, -1}, {100, 7, -1, 0x0f0f, 1ll << 40},
                                 {0, 31, 1, 0x8001, 0},         {-2147483647, 1, 1, 1, -9}, {42, 16, -1, 0x7fff, 3}};
__constant__ unsigned long long cs_seed = 0x0123456789abcdefull;

extern "C" __global__ void const_struct(const int *x, int *out, long long *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    const Rule *rule = &cs_rules[(unsigned int)v % 6u];
    out[i] = (((v + rule->add) >> rule->shift) ^ rule->mask) * rule->sign;
    wide[i] = rule->big * v + (long long)cs_seed;
}
