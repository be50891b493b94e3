// Counts the triangles of an undirected graph: for each edge (u, v) with u < v, intersects the sorted neighbours of both
// ends that are greater than v.
//
// Launch: 1-D grid, one thread per edge of the list. *count starts at zero.

__device__ unsigned intersect(const int *a, int na, const int *b, int nb, int above)
{
    unsigned found = 0;
    int i = 0, j = 0;
    while (i < na && j < nb) {
        if (a[i] == b[j]) {
            found += a[i] > above;
            ++i;
            ++j;
        } else if (a[i] < b[j]) {
            ++i;
        } else {
            ++j;
        }
    }
    return found;
}

extern "C" __global__ void triangle_count(int edges, const int *u, const int *v, const int *row_start,
                                          const int *neighbour, unsigned long long *count)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges || u[e] >= v[e])
        return;
    int ru = row_start[u[e]], rv = row_start[v[e]];
    unsigned found = intersect(neighbour + ru, row_start[u[e] + 1] - ru, neighbour + rv, row_start[v[e] + 1] - rv, v[e]);
    if (found > 0)
        atomicAdd(count, (unsigned long long)found);
}
