// Inclusive prefix sum of a block's 64-bit elements: shuffles within warps, a second scan over the warps' totals.
//
// Launch: 1-D grid, blocks of a multiple of 32 threads. Each block scans its own blockDim.x elements.

__device__ long long warp_scan(long long v)
{
    int lane = threadIdx.x & 31;
    for (int offset = 1; offset < 32; offset *= 2) {
        long long left = __shfl_up_sync(0xffffffff, v, offset);
        if (lane >= offset)
            v += left;
    }
    return v;
}

extern "C" __global__ void scan_shuffle(const long long *in, long long *out)
{
    __shared__ long long totals[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    long long v = warp_scan(in[i]);
    if (lane == 31)
        totals[warp] = v;
    __syncthreads();
    if (warp == 0) {
        long long total = warp_scan(lane < warps ? totals[lane] : 0);
        if (lane < warps)
            totals[lane] = total;
    }
    __syncthreads();
    out[i] = warp > 0 ? v + totals[warp - 1] : v;
}
