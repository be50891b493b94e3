// Clusters of four blocks that reach into each other's shared memory, from sm_90 on; before that, the same results by other means.
//
// Launch: 1-D grid of a multiple of 4 blocks, 64 threads per block.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CLUSTER __cluster_dims__(4, 1, 1)
#else
#define CLUSTER
#endif

// A histogram whose 256 bins are spread over the blocks of the cluster.
extern "C" __global__ void CLUSTER cluster_histogram(const unsigned char *in, int n, unsigned *bins)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __shared__ unsigned part[64];
    cg::cluster_group cluster = cg::this_cluster();
    part[threadIdx.x] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned *far = cluster.map_shared_rank(part, in[i] / 64);
        atomicAdd(far + in[i] % 64, 1u);
    }
    cluster.sync();
    atomicAdd(bins + cluster.block_rank() * 64 + threadIdx.x, part[threadIdx.x]);
#else
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(bins + in[i], 1u);
#endif
}

// Blocks of a cluster hand their values on to the next one, steps times, working between arriving and waiting. One int per thread.
extern "C" __global__ void CLUSTER cluster_rotate(const int *in, int *out, int steps)
{
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __shared__ int slot[2][64];
    cg::cluster_group cluster = cg::this_cluster();
    int v = in[i];
    unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    cluster.sync();
    for (int k = 0; k < steps; ++k) {
        cluster.map_shared_rank(slot[k & 1], next)[t] = v;
        auto token = cluster.barrier_arrive();
        int mark = k * 10 + 1;
        cluster.barrier_wait(std::move(token));
        v = slot[k & 1][t] + mark;
    }
    cluster.sync();
#else
    int first = blockIdx.x / 4 * 4, from = (blockIdx.x % 4 + 4 - steps % 4) % 4;
    int v = in[(first + from) * blockDim.x + t];
    for (int k = 0; k < steps; ++k)
        v += k * 10 + 1;
#endif
    out[i] = v;
}
