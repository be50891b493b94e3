// One round of Floyd and Warshall: shortest paths through vertex k, for an n x n matrix of distances.
//
// Launch: 2-D grid that covers n x n, once for each k. Row k and column k do not change in round k (the diagonal is zero),
// so they are read from `before` and everything is written to `after`.

extern "C" __global__ void floyd_warshall(const int *before, int *after, int n, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n)
        return;
    int direct = before[i * n + j], first = before[i * n + k], second = before[k * n + j];
    bool reachable = first != 0x7fffffff && second != 0x7fffffff;
    after[i * n + j] = reachable ? min(direct, first + second) : direct;
}
