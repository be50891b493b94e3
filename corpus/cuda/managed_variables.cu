// Managed variables of the module: the host may read and write them, kernels see them as global memory.
//
// Launch: any 1-D grid. Adds factor * (i + 1) over all threads i to `managed_total` and counts launches in managed_launches.

__managed__ long long managed_total = 100;
__managed__ int managed_launches;
__device__ int factor = 3;

extern "C" __global__ void managed_variables()
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd((unsigned long long *)&managed_total, (unsigned long long)factor * (i + 1));
    if (i == 0)
        managed_launches += 1;
}
