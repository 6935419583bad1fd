// match.all with its predicate, and votes under a divergent mask; n is a multiple of 32.
extern "C" __global__ void match_all(const int *x, unsigned int *all, int *part, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i], same = 0;
    unsigned int mask = __match_all_sync(0xffffffffu, v >> 4, &same);
    all[i] = mask ^ (same ? 0x100u : 0u);
    if (threadIdx.x & 1)
        part[i] = __popc(__ballot_sync(0xaaaaaaaau, v & 2));
    else
        part[i] = 100 + __any_sync(0x55555555u, v & 1);
}
