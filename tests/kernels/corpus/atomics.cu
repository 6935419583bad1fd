// Every integer atomic on global memory, 32 and 64 bits, and a few on shared memory.
extern "C" __global__ void atomics(const int *x, int *words, unsigned int *uwords, unsigned long long *longs, int n)
{
    __shared__ int local[4];
    if (threadIdx.x < 4)
        local[threadIdx.x] = threadIdx.x == 3 ? -1 : 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int v = x[i];
        atomicAdd(&words[0], v);
        atomicSub(&words[1], v);
        atomicMin(&words[2], v);
        atomicMax(&words[3], v);
        atomicAnd(&words[4], v | 0x0ff0);
        atomicOr(&words[5], v & 0x10101);
        atomicXor(&words[6], v);
        atomicMin(&uwords[0], (unsigned int)v);
        atomicMax(&uwords[1], (unsigned int)v);
        atomicInc(&uwords[2], 9u);
        atomicDec(&uwords[3], 9u);
        atomicAdd(&longs[0], (unsigned long long)(long long)v * 0x100000001ull);
        atomicMax(&longs[1], (unsigned long long)(unsigned int)v << 7);
        atomicXor(&longs[2], (unsigned long long)(unsigned int)v * 0x9e3779b97f4a7c15ull);
        atomicAdd(&local[0], v);
        atomicMax(&local[1], v);
        atomicOr(&local[2], v);
        atomicAnd(&local[3], v | 0xff);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&words[7], local[0]);
        atomicMax(&words[8], local[1]);
        atomicOr(&words[9], local[2]);
        atomicAnd(&words[10], local[3]);
    }
}
