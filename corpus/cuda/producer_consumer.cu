// Threads of one block that wait for each other by flags: a chain in which thread t adds to what thread t - 1 left, inside
// one warp too; with volatile accesses and fences.
//
// Launch: 1-D grid, blocks of up to 256 threads. out[t] = sum of in[0 .. t] within each block.

extern "C" __global__ void producer_consumer(const int *in, int *out)
{
    __shared__ int value[256];
    __shared__ volatile int ready[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    ready[t] = 0;
    __syncthreads();
    int sum = in[i];
    if (t > 0) {
        while (ready[t - 1] == 0)
            ;
        __threadfence_block();
        sum += value[t - 1];
    }
    value[t] = sum;
    __threadfence_block();
    ready[t] = 1;
    out[i] = sum;
}
