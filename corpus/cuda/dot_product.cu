// Dot product of two vectors of doubles: shuffles, shared memory, and one atomicAdd per block.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads. *out starts at zero.

extern "C" __global__ void dot_product(const double *a, const double *b, int n, double *out)
{
    __shared__ double partial[32];
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += a[i] * b[i];
    for (int mask = 16; mask > 0; mask /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0.0;
        for (int w = 0; w < blockDim.x / 32; ++w)
            total += partial[w];
        atomicAdd(out, total);
    }
}
