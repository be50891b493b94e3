// Sum of n unsigned integers in one launch: the block that finishes last adds up the partial sums.
//
// Launch: 1-D grid, 128 threads per block. partial holds one value per block, *ticket starts at zero and is zero
// again at the end, *total receives the sum.

__device__ unsigned block_sum(unsigned v)
{
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = v;
    __syncthreads();
    for (unsigned half = 64; half > 0; half >>= 1) {
        if (threadIdx.x < half)
            tile[threadIdx.x] += tile[threadIdx.x + half];
        __syncthreads();
    }
    unsigned sum = tile[0];
    __syncthreads();
    return sum;
}

extern "C" __global__ void reduce_last_block(const unsigned *in, int n, unsigned *partial, unsigned *ticket,
                                             unsigned *total)
{
    __shared__ bool last;
    unsigned v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v += in[i];
    unsigned sum = block_sum(v);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        // Wraps to zero with the last block, ready for the next launch.
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    v = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        v += partial[i];
    sum = block_sum(v);
    if (threadIdx.x == 0)
        *total = sum;
}
