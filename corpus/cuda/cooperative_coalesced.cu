// Cooperative groups of whatever threads came along: a filter with one atomic for each group of active threads, and groups by
// value.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads, at least n threads. *count starts at zero; the order of out is not
// defined.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ int aggregated_increment(int *counter)
{
    cg::coalesced_group active = cg::coalesced_threads();
    int first = 0;
    if (active.thread_rank() == 0)
        first = atomicAdd(counter, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}

extern "C" __global__ void cooperative_coalesced(const int *in, int n, int *out, int *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] % 3 == 0)
        out[aggregated_increment(count)] = in[i];
}

// out[i] = how many threads of the warp hold the same value modulo 5, and the sum of their values.
extern "C" __global__ void labelled_groups(const int *in, int2 *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cg::coalesced_group warp = cg::coalesced_threads();
    cg::coalesced_group equals = cg::labeled_partition(warp, in[i] % 5);
    int sum = 0;
    for (int k = 0; k < equals.size(); ++k)
        sum += equals.shfl(in[i], k);
    out[i] = make_int2(equals.size(), sum);
}
