// C[m][n] = A[m][k] * B[k][n], row major, 16x16 tiles in shared memory, any sizes.
#define TILE 16
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    float acc = 0.0f;
    for (int base = 0; base < k; base += TILE) {
        tile_a[ty][tx] = (row < m && base + tx < k) ? a[row * k + base + tx] : 0.0f;
        tile_b[ty][tx] = (base + ty < k && col < n) ? b[(base + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            acc += tile_a[ty][i] * tile_b[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = acc;
}
