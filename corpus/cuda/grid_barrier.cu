// A barrier across the whole grid, built from one counter: after it, each block reads what another block wrote.
//
// Launch: 1-D grid whose blocks are all resident at once. data holds one word per thread; *arrived starts at zero.

__device__ void grid_wait(unsigned *arrived, unsigned round)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned *)arrived < round * gridDim.x)
            ;
        __threadfence();
    }
    __syncthreads();
}

// Each round, every thread replaces its word by the word of its right neighbour in the grid, plus the round.
extern "C" __global__ void grid_barrier(int *data, int rounds, unsigned *arrived)
{
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned round = 0;
    for (int k = 0; k < rounds; ++k) {
        int next = data[(i + 1) % n] + k;
        grid_wait(arrived, ++round);
        data[i] = next;
        grid_wait(arrived, ++round);
    }
}
