// Atomics on shared memory, and atomics of block and system scope.
//
// Launch: 1-D grid, any block size. out holds 8 words per block; *system starts at zero.

extern "C" __global__ void atomics_shared(const unsigned *in, unsigned *out, unsigned *system)
{
    __shared__ unsigned cell[6];
    __shared__ unsigned long long wide;
    __shared__ float real;
    unsigned v = in[blockIdx.x * blockDim.x + threadIdx.x];
    if (threadIdx.x == 0) {
        cell[0] = cell[1] = cell[3] = cell[5] = 0;
        cell[2] = cell[4] = 0xffffffff;
        wide = 0;
        real = 0.0f;
    }
    __syncthreads();
    atomicAdd(&cell[0], v);
    atomicMax(&cell[1], v);
    atomicMin(&cell[2], v);
    atomicOr_block(&cell[3], v);
    atomicAnd_block(&cell[4], v);
    atomicInc(&cell[5], 10);
    atomicAdd(&wide, (unsigned long long)v << 8);
    atomicAdd(&real, 1.0f);
    atomicAdd_system(system, 1u);
    __syncthreads();
    if (threadIdx.x < 6)
        out[blockIdx.x * 8 + threadIdx.x] = cell[threadIdx.x];
    if (threadIdx.x == 6 % blockDim.x)
        out[blockIdx.x * 8 + 6] = (unsigned)wide ^ (unsigned)(wide >> 32);
    if (threadIdx.x == 7 % blockDim.x)
        out[blockIdx.x * 8 + 7] = (unsigned)real;
}
