// The sum of an array. Each thread sums four at a time in a grid-stride loop, a warp by shuffles, a block through shared
// memory; a second launch of one block sums what the blocks left.
__device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffff, v, d);
    return v;
}

__device__ float block_sum(float v) {
    __shared__ float warps[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    v = warp_sum(v);
    if (lane == 0) warps[warp] = v;
    __syncthreads();
    v = threadIdx.x < (blockDim.x >> 5) ? warps[lane] : 0.0f;
    return warp == 0 ? warp_sum(v) : 0.0f;
}

// n is a multiple of 4.
extern "C" __global__ void reduce_blocks(const float4* __restrict__ in, float* __restrict__ sums, int n) {
    float s = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        float4 v = in[i];
        s += (v.x + v.y) + (v.z + v.w);
    }
    s = block_sum(s);
    if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

extern "C" __global__ void reduce_sums(const float* __restrict__ sums, float* __restrict__ out, int n) {
    float s = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += sums[i];
    s = block_sum(s);
    if (threadIdx.x == 0) *out = s;
}
