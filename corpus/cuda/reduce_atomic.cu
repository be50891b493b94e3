// Sum, least and greatest of n integers with one atomic per block and quantity.
//
// Launch: any 1-D grid. result holds {sum, least, greatest}, set by the caller to {0, INT_MAX, INT_MIN}.

extern "C" __global__ void reduce_atomic(const int *in, int n, int *result)
{
    __shared__ int sum, least, greatest;
    if (threadIdx.x == 0) {
        sum = 0;
        least = 0x7fffffff;
        greatest = -0x7fffffff - 1;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&sum, in[i]);
        atomicMin(&least, in[i]);
        atomicMax(&greatest, in[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&result[0], sum);
        atomicMin(&result[1], least);
        atomicMax(&result[2], greatest);
    }
}
