// Breadth-first search, two ways, on a graph in CSR form.
//
// bfs_level: one thread per vertex; vertices at distance `level` reach their unvisited neighbours. level_of holds -1 for
// unvisited vertices. Launch once per level until *changed stays zero.
// bfs_queue: one thread per vertex of the frontier; claims neighbours by atomicCAS and appends them to the next
// frontier, whose length is *next_count (zero at the start).

extern "C" __global__ void bfs_level(int vertices, const int *row_start, const int *neighbour, int *level_of, int level,
                                     int *changed)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    // Other threads may claim vertices at the same time, so every access to level_of is atomic.
    if (v >= vertices || atomicAdd(&level_of[v], 0) != level)
        return;
    for (int e = row_start[v]; e < row_start[v + 1]; ++e)
        if (atomicCAS(&level_of[neighbour[e]], -1, level + 1) == -1)
            atomicExch(changed, 1);
}

extern "C" __global__ void bfs_queue(const int *frontier, int count, const int *row_start, const int *neighbour,
                                     int *level_of, int level, int *next, int *next_count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    int v = frontier[i];
    for (int e = row_start[v]; e < row_start[v + 1]; ++e) {
        int u = neighbour[e];
        if (atomicCAS(&level_of[u], -1, level + 1) == -1)
            next[atomicAdd(next_count, 1)] = u;
    }
}
