// Each thread draws a ticket and writes its own slot: the set of tickets is known, not their order.
extern "C" __global__ void tickets(unsigned int *next, unsigned int *taken, unsigned int *owner, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int ticket = atomicAdd(next, 1u);
    atomicAdd(&taken[ticket], 1u);
    owner[i] = atomicExch(&taken[n + i], ticket < (unsigned int)n ? 1u : 2u);
}
