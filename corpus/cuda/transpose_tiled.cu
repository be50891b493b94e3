// out = in transposed; tiles of 32 x 32 pass through shared memory, padded by a column against bank conflicts.
//
// Launch: 2-D grid of 32 x 8 blocks that covers the matrix in tiles of 32 x 32.

template <typename T> __device__ void transpose(const T *in, T *out, int width, int height)
{
    __shared__ T tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width)
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void transpose_f32(const float *in, float *out, int width, int height)
{
    transpose(in, out, width, height);
}

extern "C" __global__ void transpose_u16(const unsigned short *in, unsigned short *out, int width, int height)
{
    transpose(in, out, width, height);
}
