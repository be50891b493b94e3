// One function that reads through a generic pointer into global, shared, local or constant memory; and questions about
// which space a pointer points to.
//
// Launch: 1-D grid with at least n threads, blocks of 32 threads. The caller initialises nothing but in.

__constant__ int fixed[8] = {5, 6, 7, 8, 9, 10, 11, 12};

__device__ __noinline__ int sum8(const int *p)
{
    int sum = 0;
    for (int k = 0; k < 8; ++k)
        sum += p[k] * (k + 1);
    return sum;
}

__device__ __noinline__ int space_of(const void *p)
{
    return __isGlobal(p) ? 1 : __isShared(p) ? 2 : __isLocal(p) ? 3 : __isConstant(p) ? 4 : 0;
}

extern "C" __global__ void generic_addresses(const int *in, int *out, int *space, int n)
{
    __shared__ int shared[32];
    int local[8];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    shared[t] = 100 + t;
    for (int k = 0; k < 8; ++k)
        local[k] = i * k;
    __syncthreads();
    if (i >= n)
        return;
    const int *p;
    switch (i % 4) {
    case 0: p = in; break;
    case 1: p = shared + t % 16; break;
    case 2: p = local; break;
    default: p = fixed; break;
    }
    out[i] = sum8(p);
    space[i] = space_of(p);
}
