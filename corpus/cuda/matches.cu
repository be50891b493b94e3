// match: the lanes of a warp that hold the same value, for 32- and 64-bit values; and whether all do.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads. out holds 4 words per thread.

extern "C" __global__ void matches(const int *narrow, const unsigned long long *wide, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned *row = out + 4 * i;
    int all = 7;
    row[0] = __match_any_sync(0xffffffff, narrow[i]);
    row[1] = __match_any_sync(0xffffffff, wide[i]);
    row[2] = __match_all_sync(0xffffffff, narrow[i], &all);
    row[3] = all;
}

// How many of the values in each warp are distinct: the first lane of every group of equals counts.
extern "C" __global__ void distinct_per_warp(const int *in, int *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned equals = __match_any_sync(0xffffffff, in[i]);
    unsigned leaders = __ballot_sync(0xffffffff, __ffs(equals) - 1 == lane);
    if (lane == 0)
        count[i / 32] = __popc(leaders);
}
