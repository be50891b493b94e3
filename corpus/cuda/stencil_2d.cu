// Five-point average of a width x height image, borders copied.
//
// Launch: 2-D grid of 16 x 16 blocks that covers the image.

extern "C" __global__ void stencil_2d(const float *in, float *out, int width, int height)
{
    __shared__ float tile[18][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int cx = min(x, width - 1), cy = min(y, height - 1);
    tile[ty][tx] = in[cy * width + cx];
    if (threadIdx.x == 0)
        tile[ty][0] = in[cy * width + max(x - 1, 0)];
    if (threadIdx.x == 15)
        tile[ty][17] = in[cy * width + min(x + 1, width - 1)];
    if (threadIdx.y == 0)
        tile[0][tx] = in[max(y - 1, 0) * width + cx];
    if (threadIdx.y == 15)
        tile[17][tx] = in[min(y + 1, height - 1) * width + cx];
    __syncthreads();
    if (x >= width || y >= height)
        return;
    bool border = x == 0 || y == 0 || x == width - 1 || y == height - 1;
    float centre = tile[ty][tx];
    float around = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
    out[y * width + x] = border ? centre : (centre + around) * 0.2f;
}
