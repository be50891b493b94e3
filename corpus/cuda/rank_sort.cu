// Sorts n doubles by counting, for every element, the elements that stand before it; the keys pass through shared
// memory tile by tile.
//
// Launch: 1-D grid of ceil(n / 128) blocks of 128 threads.

extern "C" __global__ void rank_sort(const double *in, double *out, int n)
{
    __shared__ double tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    double key = i < n ? in[i] : 0.0;
    int rank = 0;
    for (int start = 0; start < n; start += 128) {
        int count = min(128, n - start);
        if (threadIdx.x < count)
            tile[threadIdx.x] = in[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < count; ++j)
            rank += tile[j] < key || (tile[j] == key && start + j < i);
        __syncthreads();
    }
    if (i < n)
        out[rank] = key;
}
