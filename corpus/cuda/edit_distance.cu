// Levenshtein distance of one pair of strings per block: anti-diagonals of the table, three of them in shared memory.
//
// Launch: 1-D grid of pairs, blocks of any size. Pair p is a[p * la ..] of length la and b[p * lb ..] of length lb, both up
// to 255.

extern "C" __global__ void edit_distance(const char *a, int la, const char *b, int lb, int *distance)
{
    __shared__ int diagonal[3][256];
    a += blockIdx.x * la;
    b += blockIdx.x * lb;
    for (int d = 0; d <= la + lb; ++d) {
        int *now = diagonal[d % 3], *last = diagonal[(d + 2) % 3], *before = diagonal[(d + 1) % 3];
        // Cell (i, d - i) for every i on this diagonal.
        for (int i = max(0, d - lb) + threadIdx.x; i <= min(d, la); i += blockDim.x) {
            int j = d - i;
            if (i == 0 || j == 0)
                now[i] = d;
            else
                now[i] = min(min(last[i - 1], last[i]) + 1, before[i - 1] + (a[i - 1] != b[j - 1]));
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        distance[blockIdx.x] = diagonal[(la + lb) % 3][la];
}
