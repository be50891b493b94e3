// Inclusive prefix sum of one block's elements: log2(n) rounds of Hillis and Steele, two buffers in shared memory.
//
// Launch: 1-D grid, blocks of up to 1024 threads, 2 * blockDim.x ints of dynamic shared memory. Each block scans
// its own blockDim.x elements.

extern "C" __global__ void scan_hillis_steele(const int *in, int *out)
{
    extern __shared__ int buffer[];
    int n = blockDim.x, t = threadIdx.x;
    int *from = buffer, *to = buffer + n;
    from[t] = in[blockIdx.x * n + t];
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2) {
        to[t] = t >= offset ? from[t] + from[t - offset] : from[t];
        __syncthreads();
        int *swap = from;
        from = to;
        to = swap;
    }
    out[blockIdx.x * n + t] = from[t];
}
