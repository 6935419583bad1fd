// Matrix transpose through a padded two-dimensional tile in shared memory; block 16 x 8, four rows a thread pair.
extern "C" __global__ void transpose(const int *in, int *out, int width, int height)
{
    __shared__ int tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x;
    for (int j = threadIdx.y; j < 16; j += 8) {
        int y = blockIdx.y * 16 + j;
        if (x < width && y < height)
            tile[j][threadIdx.x] = in[y * width + x];
    }
    __syncthreads();
    int tx = blockIdx.y * 16 + threadIdx.x;
    for (int j = threadIdx.y; j < 16; j += 8) {
        int ty = blockIdx.x * 16 + j;
        if (tx < height && ty < width)
            out[ty * height + tx] = tile[threadIdx.x][j];
    }
}
