// One step of PageRank over incoming edges in CSR form, in double precision; and the largest change, by atomicMax on
// the bits of a non-negative double.
//
// Launch: 1-D grid with one thread per page. *change starts at zero.

extern "C" __global__ void pagerank(int pages, const int *row_start, const int *source, const int *out_degree,
                                    const double *rank, double *next, double damping, unsigned long long *change)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pages)
        return;
    double sum = 0.0;
    for (int e = row_start[p]; e < row_start[p + 1]; ++e)
        sum += rank[source[e]] / out_degree[source[e]];
    double value = (1.0 - damping) / pages + damping * sum;
    next[p] = value;
    atomicMax(change, (unsigned long long)__double_as_longlong(fabs(value - rank[p])));
}
