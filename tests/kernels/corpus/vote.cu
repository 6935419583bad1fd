// Warp votes, ballots, matches and lane masks; n is a multiple of 32.
extern "C" __global__ void vote(const int *x, unsigned int *ballots, int *flags, unsigned int *same, unsigned int *ranks, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    unsigned int odd = __ballot_sync(0xffffffffu, v & 1);
    int any = __any_sync(0xffffffffu, v > 900);
    int all = __all_sync(0xffffffffu, v > -900);
    ballots[i] = odd;
    flags[i] = any * 2 + all;
    same[i] = __match_any_sync(0xffffffffu, v & 7);
    unsigned int below = (1u << (threadIdx.x & 31)) - 1u;
    ranks[i] = __popc(odd & below);
}
