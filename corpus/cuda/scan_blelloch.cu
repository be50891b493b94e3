// Exclusive prefix sum of 512 elements per block: Blelloch's up-sweep and down-sweep, with padding against bank
// conflicts.
//
// Launch: 1-D grid, 256 threads per block. Each block scans 512 elements; sums receives each block's total.

#define PAD(i) ((i) + ((i) >> 5))

extern "C" __global__ void scan_blelloch(const unsigned *in, unsigned *out, unsigned *sums)
{
    __shared__ unsigned tile[PAD(512)];
    int t = threadIdx.x, base = blockIdx.x * 512;
    tile[PAD(t)] = in[base + t];
    tile[PAD(t + 256)] = in[base + t + 256];
    int offset = 1;
    for (int d = 256; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d)
            tile[PAD(offset * (2 * t + 2) - 1)] += tile[PAD(offset * (2 * t + 1) - 1)];
        offset *= 2;
    }
    if (t == 0) {
        sums[blockIdx.x] = tile[PAD(511)];
        tile[PAD(511)] = 0;
    }
    for (int d = 1; d < 512; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int left = PAD(offset * (2 * t + 1) - 1), right = PAD(offset * (2 * t + 2) - 1);
            unsigned v = tile[left];
            tile[left] = tile[right];
            tile[right] += v;
        }
    }
    __syncthreads();
    out[base + t] = tile[PAD(t)];
    out[base + t + 256] = tile[PAD(t + 256)];
}

// Adds to each block's 512 elements the sum of the blocks before it, as found in offsets.
extern "C" __global__ void add_offsets(unsigned *data, const unsigned *offsets)
{
    data[blockIdx.x * 512 + threadIdx.x] += offsets[blockIdx.x];
    data[blockIdx.x * 512 + threadIdx.x + 256] += offsets[blockIdx.x];
}
