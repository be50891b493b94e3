// Every thread of a 3-D grid of 3-D blocks writes where it is.
//
// Launch: any grid and block. out holds 4 ints per thread: the thread's x, y, z position in the grid, and
// blockDim.x * 10000 + blockDim.y * 100 + blockDim.z + gridDim.x * gridDim.y * gridDim.z * 1000000.

extern "C" __global__ void thread_index(int4 *out)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    unsigned width = gridDim.x * blockDim.x;
    unsigned height = gridDim.y * blockDim.y;
    int shape = blockDim.x * 10000 + blockDim.y * 100 + blockDim.z;
    int blocks = gridDim.x * gridDim.y * gridDim.z;
    out[(z * height + y) * width + x] = make_int4(x, y, z, shape + blocks * 1000000);
}
