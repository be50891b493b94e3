// How often each byte occurs. Each block counts in shared memory with atomics, four bytes per thread at a time in a grid-stride
// loop; a second launch adds the blocks' counts. n is a multiple of 4.
extern "C" __global__ void histogram_blocks(const unsigned* __restrict__ in, unsigned* __restrict__ partial, int n) {
    __shared__ unsigned bins[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) bins[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        unsigned four = in[i];
        atomicAdd(&bins[four & 255], 1u);
        atomicAdd(&bins[(four >> 8) & 255], 1u);
        atomicAdd(&bins[(four >> 16) & 255], 1u);
        atomicAdd(&bins[four >> 24], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) partial[blockIdx.x * 256 + b] = bins[b];
}

// One block of 256 threads.
extern "C" __global__ void histogram_sums(const unsigned* __restrict__ partial, unsigned* __restrict__ out, int blocks) {
    unsigned sum = 0;
    for (int b = 0; b < blocks; b++) sum += partial[b * 256 + threadIdx.x];
    out[threadIdx.x] = sum;
}
