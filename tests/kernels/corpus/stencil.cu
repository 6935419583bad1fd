// One step of a 2D five-point stencil in float, with a halo in shared memory; block 8 x 8.
extern "C" __global__ void stencil(const float *in, float *out, int width, int height, float weight)
{
    __shared__ float tile[10][10];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x0 = blockIdx.x * 8 - 1, y0 = blockIdx.y * 8 - 1;
    for (int k = ty * 8 + tx; k < 100; k += 64) {
        int x = x0 + k % 10, y = y0 + k / 10;
        tile[k / 10][k % 10] = (x >= 0 && x < width && y >= 0 && y < height) ? in[y * width + x] : 0.0f;
    }
    __syncthreads();
    int x = x0 + 1 + tx, y = y0 + 1 + ty;
    if (x < width && y < height) {
        float around = __fadd_rn(__fadd_rn(tile[ty][tx + 1], tile[ty + 2][tx + 1]), __fadd_rn(tile[ty + 1][tx], tile[ty + 1][tx + 2]));
        out[y * width + x] = fmaf(weight, around, tile[ty + 1][tx + 1]);
    }
}
