// Connected components by a lock-free union-find: every edge joins the trees of its ends, the smaller root wins.
//
// components_join: 1-D grid, one thread per edge; parent[v] = v at the start.
// components_flatten: 1-D grid, one thread per vertex; label[v] = root of v, the least vertex of its component.

__device__ int find_root(int *parent, int v)
{
    for (;;) {
        int p = atomicAdd(&parent[v], 0);
        if (p == v)
            return v;
        v = p;
    }
}

extern "C" __global__ void components_join(int edges, const int2 *edge, int *parent)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges)
        return;
    int a = find_root(parent, edge[e].x), b = find_root(parent, edge[e].y);
    while (a != b) {
        if (a < b) {
            int t = a;
            a = b;
            b = t;
        }
        int seen = atomicCAS(&parent[a], a, b);
        if (seen == a)
            return;
        a = find_root(parent, seen);
        b = find_root(parent, b);
    }
}

extern "C" __global__ void components_flatten(int vertices, const int *parent, int *label)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vertices)
        return;
    int root = v;
    while (parent[root] != root)
        root = parent[root];
    label[v] = root;
}
