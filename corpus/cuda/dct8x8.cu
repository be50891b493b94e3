// Two-dimensional discrete cosine transform of 8 x 8 tiles: c = m x m^T with the cosine matrix m in shared memory.
//
// Launch: 2-D grid of 8 x 8 blocks, one for each tile; the image's width is gridDim.x * 8.

extern "C" __global__ void dct8x8(const float *in, float *out)
{
    __shared__ float m[8][8], tile[8][8], half[8][8];
    int x = threadIdx.x, y = threadIdx.y;
    int width = gridDim.x * 8, at = (blockIdx.y * 8 + y) * width + blockIdx.x * 8 + x;
    m[y][x] = (y == 0 ? 0.35355339f : 0.5f) * cospif((2 * x + 1) * y * 0.0625f);
    tile[y][x] = in[at];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k)
        sum += m[y][k] * tile[k][x];
    half[y][x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int k = 0; k < 8; ++k)
        sum += half[y][k] * m[x][k];
    out[at] = sum;
}
