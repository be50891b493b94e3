// A 5 x 5 stencil with any weights over the inner points of an image. One thread per point, blocks of 32 x 8.
struct Weights {
    float at[5][5];
};

extern "C" __global__ void stencil25(const float* __restrict__ in, float* __restrict__ out, int w, int h, Weights weights) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 2 || y < 2 || x >= w - 2 || y >= h - 2) return;
    const float* corner = in + (y - 2) * w + (x - 2);
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 5; j++) {
#pragma unroll
        for (int i = 0; i < 5; i++) sum += weights.at[j][i] * corner[j * w + i];
    }
    out[y * w + x] = sum;
}
