// Sorts the 2 * blockDim.x keys of each block with a bitonic network in shared memory.
//
// Launch: 1-D grid, blocks of a power of two up to 512 threads. descending turns the order round.

__device__ void exchange(unsigned &a, unsigned &b, bool up)
{
    if ((a > b) == up) {
        unsigned t = a;
        a = b;
        b = t;
    }
}

extern "C" __global__ void bitonic_sort(unsigned *keys, int descending)
{
    __shared__ unsigned tile[1024];
    unsigned t = threadIdx.x, n = 2 * blockDim.x;
    unsigned *mine = keys + blockIdx.x * n;
    tile[t] = mine[t];
    tile[t + blockDim.x] = mine[t + blockDim.x];
    for (unsigned size = 2; size <= n; size *= 2)
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            unsigned at = 2 * t - (t & (stride - 1));
            bool up = ((t & (size / 2)) == 0 || size == n) != (descending != 0);
            exchange(tile[at], tile[at + stride], up);
        }
    __syncthreads();
    mine[t] = tile[t];
    mine[t + blockDim.x] = tile[t + blockDim.x];
}
