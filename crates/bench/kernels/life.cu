// A generation of the Game of Life on a torus; cells are 0 or 1. One thread per cell, blocks of 32 x 8.
extern "C" __global__ void life(const float* __restrict__ in, float* __restrict__ out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    int left = x > 0 ? x - 1 : n - 1, right = x < n - 1 ? x + 1 : 0;
    const float *above = in + (y > 0 ? y - 1 : n - 1) * n, *here = in + y * n, *below = in + (y < n - 1 ? y + 1 : 0) * n;
    float cell = here[x];
    float around = above[left] + above[x] + above[right] + here[left] + here[right] + below[left] + below[x] + below[right];
    out[y * n + x] = around == 3.0f || (around == 2.0f && cell == 1.0f) ? 1.0f : 0.0f;
}
