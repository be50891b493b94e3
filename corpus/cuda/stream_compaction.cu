// Keeps the elements that are greater than a threshold.
//
// compact_stable keeps their order within one block. Launch: one block of 256 threads over n elements.
// compact_any writes them in any order. Launch: 1-D grid, blocks of a multiple of 32 threads, one element per thread.
// *count starts at zero and receives the number of elements kept.

extern "C" __global__ void compact_stable(const int *in, int n, int threshold, int *out, int *count)
{
    __shared__ int kept[8];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int base = 0;
    for (int start = 0; start < n; start += 256) {
        int i = start + threadIdx.x;
        bool keep = i < n && in[i] > threshold;
        unsigned ballot = __ballot_sync(0xffffffff, keep);
        if (lane == 0)
            kept[warp] = __popc(ballot);
        __syncthreads();
        int place = base + __popc(ballot & ((1u << lane) - 1));
        for (int w = 0; w < 8; ++w) {
            if (w < warp)
                place += kept[w];
            base += kept[w];
        }
        if (keep)
            out[place] = in[i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *count = base;
}

extern "C" __global__ void compact_any(const int *in, int n, int threshold, int *out, int *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    bool keep = i < n && in[i] > threshold;
    unsigned ballot = __ballot_sync(0xffffffff, keep);
    int base = 0;
    if (lane == 0 && ballot != 0)
        base = atomicAdd(count, __popc(ballot));
    base = __shfl_sync(0xffffffff, base, 0);
    if (keep)
        out[base + __popc(ballot & ((1u << lane) - 1))] = in[i];
}
