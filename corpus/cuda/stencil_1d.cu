// out[i] = sum of in[i - 3 .. i + 3], zero outside; the tile and its halo pass through shared memory.
//
// Launch: 1-D grid of ceil(n / 128) blocks of 128 threads.

#define RADIUS 3

extern "C" __global__ void stencil_1d(const int *in, int *out, int n)
{
    __shared__ int tile[128 + 2 * RADIUS];
    int i = blockIdx.x * 128 + threadIdx.x;
    int t = threadIdx.x + RADIUS;
    tile[t] = i < n ? in[i] : 0;
    if (threadIdx.x < RADIUS) {
        tile[t - RADIUS] = i >= RADIUS ? in[i - RADIUS] : 0;
        tile[t + 128] = i + 128 < n ? in[i + 128] : 0;
    }
    __syncthreads();
    if (i >= n)
        return;
    int sum = 0;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; ++k)
        sum += tile[t + k];
    out[i] = sum;
}
