// An assertion on every element: the launch fails if one does not hold.
//
// Launch: 1-D grid with at least n threads.

#include <assert.h>

extern "C" __global__ void device_assert(const int *in, int *out, int n, int limit)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    assert(in[i] < limit);
    out[i] = limit - in[i];
}
