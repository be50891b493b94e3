// Inclusive prefix sum of n elements across all blocks in a single pass, by decoupled look-back: each block publishes its
// own sum, then walks back over its predecessors until one of them knows its whole prefix.
//
// Launch: 1-D grid of ceil(n / 128) blocks of 128 threads. status holds one 64-bit word per block, *next one word,
// all zero at the start. A status word is (flag << 32 | value): 1 for a block's own sum, 2 for its whole prefix.

extern "C" __global__ void scan_lookback(const unsigned *in, unsigned *out, int n, unsigned long long *status,
                                         unsigned *next)
{
    __shared__ unsigned tile[128];
    __shared__ unsigned block, before;
    int t = threadIdx.x;
    // Blocks number themselves as they start, so that a block only ever waits for one that runs.
    if (t == 0)
        block = atomicAdd(next, 1);
    __syncthreads();
    int i = block * 128 + t;
    tile[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < 128; offset *= 2) {
        unsigned left = t >= offset ? tile[t - offset] : 0;
        __syncthreads();
        tile[t] += left;
        __syncthreads();
    }
    if (t == 0) {
        unsigned long long own = tile[127];
        unsigned prefix = 0;
        if (block > 0) {
            atomicExch(&status[block], 1ull << 32 | own);
            int look = block - 1;
            for (;;) {
                unsigned long long word = atomicAdd(&status[look], 0ull);
                if (word >> 32 == 0)
                    continue;
                prefix += (unsigned)word;
                if (word >> 32 == 2)
                    break;
                --look;
            }
        }
        atomicExch(&status[block], 2ull << 32 | (unsigned)(prefix + own));
        before = prefix;
    }
    __syncthreads();
    if (i < n)
        out[i] = before + tile[t];
}
