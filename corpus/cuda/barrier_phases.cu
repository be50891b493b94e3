// Barriers in shared memory: cuda::barrier, whose arrival and wait are two steps, which counts arrivals, and which threads may leave.
//
// Launch: 1-D grid, 128 threads per block.

#include <cuda/barrier>
#include <utility>

using barrier = cuda::barrier<cuda::thread_scope_block>;

#pragma nv_diag_suppress static_var_with_dynamic_init

// Each thread gives its value to its neighbour, and works between arriving and waiting. One int per thread.
extern "C" __global__ void barrier_phases(int *data, int rounds)
{
    __shared__ barrier all;
    __shared__ int tile[2][128];
    int t = threadIdx.x, n = blockDim.x, i = blockIdx.x * n + t;
    if (t == 0)
        init(&all, n);
    __syncthreads();
    int v = data[i];
    for (int k = 0; k < rounds; ++k) {
        tile[k & 1][t] = v;
        barrier::arrival_token token = all.arrive();
        int own = v * 3 + k;
        all.wait(std::move(token));
        v = tile[k & 1][(t + 1) % n] - own;
    }
    data[i] = v;
}

// Warp w takes part in w + 1 rounds and then leaves. alive counts the threads of each round, 4 ints per block; out has one int per thread.
extern "C" __global__ void barrier_leaving(int *out, int *alive)
{
    __shared__ barrier all;
    __shared__ int count[4];
    __shared__ int tile[128];
    int t = threadIdx.x, n = blockDim.x, v = t;
    if (t < 4)
        count[t] = 0;
    if (t == 0)
        init(&all, n);
    __syncthreads();
    int last = t / 32;
    for (int k = 0; k < last; ++k) {
        atomicAdd(&count[k], 1);
        tile[t] = v;
        all.arrive_and_wait();
        v += tile[t ^ 1] + k;
        all.arrive_and_wait();
    }
    atomicAdd(&count[last], 1);
    out[blockIdx.x * n + t] = v;
    if (last < 3) {
        all.arrive_and_drop();
    } else {
        all.arrive_and_wait();
        if (t >= n - 4)
            alive[blockIdx.x * 4 + t - (n - 4)] = count[t - (n - 4)];
    }
}

// The first lane arrives for its whole warp; everyone waits by parity. One int per thread.
extern "C" __global__ void barrier_many_at_once(int *data, int rounds)
{
    __shared__ barrier all;
    __shared__ int tile[2][128];
    int t = threadIdx.x, n = blockDim.x, i = blockIdx.x * n + t;
    if (t == 0)
        init(&all, n);
    __syncthreads();
    int v = data[i];
    for (int k = 0; k < rounds; ++k) {
        tile[k & 1][t] = v;
        __syncwarp();
        if (t % 32 == 0)
            (void)all.arrive(32);
        all.wait_parity(k & 1);
        v += tile[k & 1][n - 1 - t];
    }
    data[i] = v;
}
