// A ring of buffers between warps of a block: the first warp fills them, the others drain them. Each buffer has two barriers
// in shared memory, one that says it is full and one that says it is empty.
//
// Launch: 1-D grid, 128 threads per block. in holds 32 * steps floats per block, out 96 per block.

#include <cuda/barrier>

using barrier = cuda::barrier<cuda::thread_scope_block>;

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void barrier_pipeline(const float *in, float *out, int steps)
{
    const int stages = 3;
    __shared__ barrier full[stages], empty[stages];
    __shared__ float buffer[stages][32];
    if (threadIdx.x < stages) {
        init(&full[threadIdx.x], 32);
        init(&empty[threadIdx.x], blockDim.x - 32);
    }
    __syncthreads();
    in += blockIdx.x * 32 * steps;
    if (threadIdx.x < 32) {
        for (int k = 0; k < steps; ++k) {
            int stage = k % stages, lap = k / stages;
            // A new barrier counts as if the phase before its first one were complete.
            empty[stage].wait_parity((lap & 1) ^ 1);
            buffer[stage][threadIdx.x] = in[k * 32 + threadIdx.x];
            (void)full[stage].arrive();
        }
    } else {
        int t = threadIdx.x - 32;
        float sum = 0;
        for (int k = 0; k < steps; ++k) {
            int stage = k % stages, lap = k / stages;
            full[stage].wait_parity(lap & 1);
            sum = sum * 0.5f + buffer[stage][(t * 5 + k) % 32];
            (void)empty[stage].arrive();
        }
        out[blockIdx.x * 96 + t] = sum;
    }
}
