// Two-dimensional convolution with a 5 x 5 filter in constant memory, edges clamped.
//
// Launch: 2-D grid that covers the image. The filter has a binomial default; a host may write another to `filter`.

__constant__ float filter[5][5] = {
    {1 / 256.0f, 4 / 256.0f, 6 / 256.0f, 4 / 256.0f, 1 / 256.0f},
    {4 / 256.0f, 16 / 256.0f, 24 / 256.0f, 16 / 256.0f, 4 / 256.0f},
    {6 / 256.0f, 24 / 256.0f, 36 / 256.0f, 24 / 256.0f, 6 / 256.0f},
    {4 / 256.0f, 16 / 256.0f, 24 / 256.0f, 16 / 256.0f, 4 / 256.0f},
    {1 / 256.0f, 4 / 256.0f, 6 / 256.0f, 4 / 256.0f, 1 / 256.0f},
};

extern "C" __global__ void convolution(const float *in, float *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int j = -2; j <= 2; ++j)
#pragma unroll
        for (int i = -2; i <= 2; ++i) {
            int sx = min(max(x + i, 0), width - 1), sy = min(max(y + j, 0), height - 1);
            sum += filter[j + 2][i + 2] * in[sy * width + sx];
        }
    out[y * width + x] = sum;
}
