// The transpose of a matrix through tiles of shared memory, padded against bank conflicts. Blocks of 32 x 8, each for a tile of
// 32 x 32; rows and columns are multiples of 32.
constexpr int TILE = 32, ROWS = 8;

extern "C" __global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int columns, int rows) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
