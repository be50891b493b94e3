// A least-significant-digit radix sort of 32-bit keys, 4 bits in each pass, in three kernels per pass.
//
// With B blocks of 256 threads and n = 256 * B keys, for shift = 0, 4, ..., 28:
//   radix_count    <<<B, 256>>>: counts[digit * B + block] = keys of that digit in that block;
//   radix_offsets  <<<1, 1>>>: turns counts into their exclusive prefix sums;
//   radix_scatter  <<<B, 256>>>: moves the keys to their places, in order.

extern "C" __global__ void radix_count(const unsigned *keys, int shift, unsigned *counts)
{
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16)
        bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned digit = keys[blockIdx.x * 256 + threadIdx.x] >> shift & 15;
    atomicAdd(&bins[digit], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void radix_offsets(unsigned *counts, int n)
{
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) {
        unsigned c = counts[i];
        counts[i] = sum;
        sum += c;
    }
}

extern "C" __global__ void radix_scatter(const unsigned *in, unsigned *out, int shift, const unsigned *offsets)
{
    __shared__ unsigned warp_counts[8][16];
    unsigned t = threadIdx.x, lane = t & 31, warp = t >> 5;
    unsigned key = in[blockIdx.x * 256 + t];
    unsigned digit = key >> shift & 15;
    // The lanes of this warp that hold the same digit.
    unsigned peers = 0xffffffff;
    for (int b = 0; b < 4; ++b) {
        unsigned ones = __ballot_sync(0xffffffff, digit >> b & 1);
        peers &= digit >> b & 1 ? ones : ~ones;
    }
    if (lane < 16)
        warp_counts[warp][lane] = 0;
    __syncwarp();
    if ((peers & ((1u << lane) - 1)) == 0)
        warp_counts[warp][digit] = __popc(peers);
    __syncthreads();
    unsigned place = offsets[digit * gridDim.x + blockIdx.x] + __popc(peers & ((1u << lane) - 1));
    for (unsigned w = 0; w < warp; ++w)
        place += warp_counts[w][digit];
    out[place] = key;
}
