// Inclusive sums of an array, reduce then scan: the sum of each tile, the exclusive scan of those sums by one block, and then each
// tile again with what came before it. A thread takes four neighbours at a time, a warp is scanned by shuffles.
constexpr int THREADS = 256, ROUNDS = 4, TILE = THREADS * ROUNDS * 4;

__device__ unsigned warp_inclusive(unsigned v) {
    int lane = threadIdx.x & 31;
    for (int d = 1; d < 32; d <<= 1) {
        unsigned left = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += left;
    }
    return v;
}

// The inclusive scan of v over the block; total is the sum of all.
__device__ unsigned block_inclusive(unsigned v, unsigned* warps, unsigned& total) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = blockDim.x >> 5;
    v = warp_inclusive(v);
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    if (warp == 0) {
        unsigned s = warp_inclusive(lane < count ? warps[lane] : 0);
        if (lane < count) warps[lane] = s;
    }
    __syncthreads();
    total = warps[count - 1];
    if (warp > 0) v += warps[warp - 1];
    __syncthreads();
    return v;
}

// n is a multiple of the tile.
extern "C" __global__ void scan_tile_sums(const uint4* __restrict__ in, unsigned* __restrict__ sums) {
    __shared__ unsigned warps[32];
    const uint4* tile = in + (size_t)blockIdx.x * (TILE / 4);
    unsigned s = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        uint4 v = tile[r * THREADS + threadIdx.x];
        s += v.x + v.y + v.z + v.w;
    }
    for (int d = 16; d > 0; d >>= 1) s += __shfl_down_sync(0xffffffff, s, d);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; w++) s += warps[w];
        sums[blockIdx.x] = s;
    }
}

// One block; sums become what stands before each tile.
extern "C" __global__ void scan_sums(unsigned* sums, int n) {
    __shared__ unsigned warps[32];
    unsigned before = 0;
    for (int start = 0; start < n; start += blockDim.x) {
        int i = start + threadIdx.x;
        unsigned v = i < n ? sums[i] : 0, total;
        unsigned s = block_inclusive(v, warps, total);
        if (i < n) sums[i] = before + s - v;
        before += total;
    }
}

extern "C" __global__ void scan_tiles(const uint4* __restrict__ in, const unsigned* __restrict__ sums, uint4* __restrict__ out) {
    __shared__ unsigned warps[32];
    size_t first = (size_t)blockIdx.x * (TILE / 4);
    unsigned before = sums[blockIdx.x];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        size_t i = first + r * THREADS + threadIdx.x;
        uint4 v = in[i];
        v.y += v.x, v.z += v.y, v.w += v.z;
        unsigned total, s = before + block_inclusive(v.w, warps, total) - v.w;
        out[i] = make_uint4(v.x + s, v.y + s, v.z + s, v.w + s);
        before += total;
    }
}
