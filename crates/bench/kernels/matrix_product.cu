// C = A B for square matrices, through tiles in shared memory; each thread computes eight elements of a column in registers.
// Blocks of 64 x 8 threads, each for a tile of 64 x 64; n is a multiple of 64.
constexpr int TILE = 64, DEPTH = 32, ROWS = 8;

extern "C" __global__ void __launch_bounds__(512) matrix_product(const float* __restrict__ a, const float* __restrict__ b,
                                                                 float* __restrict__ c, int n) {
    __shared__ float as[TILE][DEPTH], bs[DEPTH][TILE];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE;
    int thread = threadIdx.y * TILE + threadIdx.x, ax = thread % DEPTH, ay = thread / DEPTH;
    float sum[ROWS] = {};
    for (int k = 0; k < n; k += DEPTH) {
#pragma unroll
        for (int j = 0; j < TILE; j += TILE * ROWS / DEPTH) as[ay + j][ax] = a[(row + ay + j) * n + k + ax];
#pragma unroll
        for (int j = 0; j < DEPTH; j += ROWS) bs[threadIdx.y + j][threadIdx.x] = b[(k + threadIdx.y + j) * n + column];
        __syncthreads();
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            float right = bs[d][threadIdx.x];
#pragma unroll
            for (int i = 0; i < ROWS; i++) sum[i] += as[threadIdx.y * ROWS + i][d] * right;
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) c[(row + threadIdx.y * ROWS + i) * n + column] = sum[i];
}
