// Softmax of each row: one warp a row (blockDim = 32 x rows), butterfly shuffles, expf.
extern "C" __global__ void softmax(const float *in, float *out, int rows, int cols)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    const float *src = in + (long long)row * cols;
    float *dst = out + (long long)row * cols;
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < cols; i += 32)
        top = fmaxf(top, src[i]);
    for (int step = 16; step > 0; step >>= 1)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32)
        sum += expf(src[i] - top);
    for (int step = 16; step > 0; step >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    for (int i = threadIdx.x; i < cols; i += 32)
        dst[i] = expf(src[i] - top) / sum;
}
