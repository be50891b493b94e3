// Sum of n integers per block: a tree in shared memory.
//
// Launch: 1-D grid, 256 threads per block; out holds one int per block. Each block sums the 512 elements
// from 512 * blockIdx.x; elements beyond n count as zero.

extern "C" __global__ void reduce_shared(const int *in, int *out, int n)
{
    __shared__ int tile[256];
    unsigned t = threadIdx.x;
    unsigned i = blockIdx.x * 512 + t;
    int sum = i < n ? in[i] : 0;
    if (i + 256 < n)
        sum += in[i + 256];
    tile[t] = sum;
    __syncthreads();
    for (unsigned half = 128; half > 0; half >>= 1) {
        if (t < half)
            tile[t] += tile[t + half];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = tile[0];
}
