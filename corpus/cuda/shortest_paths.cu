// One round of Bellman and Ford: every edge (from, to, weight) relaxes its end by atomicMin.
//
// Launch: 1-D grid with one thread per edge, again and again until *changed stays zero.

extern "C" __global__ void shortest_paths(int edges, const int *from, const int *to, const unsigned *weight,
                                          unsigned *distance, int *changed)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges)
        return;
    unsigned here = *(volatile unsigned *)&distance[from[e]];
    if (here == 0xffffffff)
        return;
    unsigned there = here + weight[e];
    if (atomicMin(&distance[to[e]], there) > there)
        atomicOr(changed, 1);
}
