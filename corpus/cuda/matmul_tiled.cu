// c = a b for matrices of floats, a of m x k, b of k x n, in tiles of 16 x 16 in shared memory.
//
// Launch: 2-D grid of 16 x 16 blocks that covers c (n wide, m high).

#define TILE 16

extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        as[ty][tx] = row < m && start + tx < k ? a[row * k + start + tx] : 0.0f;
        bs[ty][tx] = col < n && start + ty < k ? b[(start + ty) * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i)
            sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}
