// Histogram of floats in equal bins over [low, high), straight into global memory; values outside count in the first or last
// bin.
//
// Launch: any 1-D grid. bins holds `count` counters, zero at the start.

extern "C" __global__ void histogram_global(const float *in, int n, unsigned *bins, int count, float low, float high)
{
    float scale = count / (high - low);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int b = (int)floorf((in[i] - low) * scale);
        atomicAdd(&bins[min(max(b, 0), count - 1)], 1);
    }
}
