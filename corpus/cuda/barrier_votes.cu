// Barriers that count and vote: __syncthreads_count, __syncthreads_and, __syncthreads_or.
//
// Launch: 1-D grid, blocks of any size, one element per thread. out holds 3 ints per thread.

extern "C" __global__ void barrier_votes(const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    out[3 * i] = __syncthreads_count(v > 0);
    out[3 * i + 1] = __syncthreads_and(v > -90) != 0;
    out[3 * i + 2] = __syncthreads_or(v == 77) != 0;
}

// Repeats a relaxation until no thread of the block changed anything: each element becomes the least of its neighbours plus one.
extern "C" __global__ void relax_until_stable(int *data, int *rounds)
{
    __shared__ int tile[256];
    int t = threadIdx.x, n = blockDim.x, k = 0, changed;
    tile[t] = data[blockIdx.x * n + t];
    __syncthreads();
    do {
        int least = tile[t];
        if (t > 0)
            least = min(least, tile[t - 1] + 1);
        if (t + 1 < n)
            least = min(least, tile[t + 1] + 1);
        changed = __syncthreads_or(least != tile[t]);
        tile[t] = least;
        __syncthreads();
        ++k;
    } while (changed);
    data[blockIdx.x * n + t] = tile[t];
    if (t == 0)
        rounds[blockIdx.x] = k;
}
