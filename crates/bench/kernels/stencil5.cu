// A step of a 5-point stencil over the inner points of an image. One thread per point, blocks of 32 x 8.
extern "C" __global__ void stencil5(const float* __restrict__ in, float* __restrict__ out, int w, int h, float centre, float side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int i = y * w + x;
    out[i] = centre * in[i] + side * (in[i - w] + in[i - 1] + in[i + 1] + in[i + w]);
}
