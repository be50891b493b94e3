// Per-warp sum, least, greatest, and, or, xor: one instruction from sm_80 on, shuffles before.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads, one thread per element. out holds 6 words per warp.

#if __CUDA_ARCH__ >= 800
#define REDUCE(name, v, expression) name(0xffffffff, v)
#else
#define REDUCE(name, v, expression)                                                                                    \
    [](unsigned a) {                                                                                                   \
        for (int mask = 16; mask > 0; mask >>= 1) {                                                                    \
            unsigned b = __shfl_xor_sync(0xffffffff, a, mask);                                                         \
            a = expression;                                                                                            \
        }                                                                                                              \
        return a;                                                                                                      \
    }(v)
#endif

extern "C" __global__ void reduce_redux(const unsigned *in, unsigned *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = in[i];
    unsigned sum = REDUCE(__reduce_add_sync, v, a + b);
    unsigned least = REDUCE(__reduce_min_sync, v, min(a, b));
    unsigned greatest = REDUCE(__reduce_max_sync, v, max(a, b));
    unsigned all = REDUCE(__reduce_and_sync, v, a & b);
    unsigned any = REDUCE(__reduce_or_sync, v, a | b);
    unsigned parity = REDUCE(__reduce_xor_sync, v, a ^ b);
    unsigned *row = out + (i / 32) * 6;
    switch (i % 32) {
    case 0: row[0] = sum; break;
    case 1: row[1] = least; break;
    case 2: row[2] = greatest; break;
    case 3: row[3] = all; break;
    case 4: row[4] = any; break;
    case 5: row[5] = parity; break;
    }
}

// Signed forms over the lanes of one parity: each half of the warp reduces its own values.
extern "C" __global__ void reduce_redux_masked(const int *in, int *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    unsigned mask = i & 1 ? 0xaaaaaaaau : 0x55555555u;
#if __CUDA_ARCH__ >= 800
    out[i] = __reduce_max_sync(mask, v) - __reduce_min_sync(mask, v);
#else
    int least = v, greatest = v;
    for (int k = 2; k < 32; k <<= 1) {
        least = min(least, __shfl_xor_sync(mask, least, k));
        greatest = max(greatest, __shfl_xor_sync(mask, greatest, k));
    }
    out[i] = greatest - least;
#endif
}
