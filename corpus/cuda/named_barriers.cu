// Named barriers between some warps of a block: two producer warps fill a buffer, two consumer warps drain it, with
// bar.arrive on one side of a barrier and bar.sync on the other.
//
// Launch: 1-D grid, 128 threads per block: warps 0 and 1 produce, 2 and 3 consume. in and out hold 64 * rounds ints per block.

__device__ void arrive(int barrier) { asm volatile("bar.arrive %0, 128;" ::"r"(barrier) : "memory"); }
__device__ void wait(int barrier) { asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory"); }

extern "C" __global__ void named_barriers(const int *in, int *out, int rounds)
{
    __shared__ int buffer[64];
    const int full = 1, empty = 2;
    int t = threadIdx.x & 63, base = blockIdx.x * 64 * rounds;
    if (threadIdx.x < 64) {
        for (int k = 0; k < rounds; ++k) {
            if (k > 0)
                wait(empty);
            buffer[t] = in[base + k * 64 + t] * 2;
            arrive(full);
        }
    } else {
        for (int k = 0; k < rounds; ++k) {
            wait(full);
            out[base + k * 64 + t] = buffer[63 - t] + 1;
            if (k + 1 < rounds)
                wait(empty);
        }
    }
}

// Each pair of warps synchronises on its own barrier: the two halves of the block run a different number of rounds.
extern "C" __global__ void paired_barriers(int *data)
{
    __shared__ int tile[128];
    int pair = threadIdx.x / 64, t = threadIdx.x & 63;
    int *half = tile + pair * 64;
    half[t] = data[blockIdx.x * 128 + threadIdx.x];
    for (int k = 0; k < 3 + 4 * pair; ++k) {
        asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
        int next = half[(t + 1) & 63];
        asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
        half[t] = next + k;
    }
    data[blockIdx.x * 128 + threadIdx.x] = half[t];
}
