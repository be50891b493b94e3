// The k nearest of n reference points for each query in d dimensions: insertion into a short sorted list in local memory.
//
// Launch: 1-D grid with at least `queries` threads; k up to 8. index holds k places per query, nearest first; ties go
// to the smaller index.

extern "C" __global__ void nearest_neighbours(const float *reference, int n, const float *query, int queries, int d, int k,
                                              int *index, float *distance)
{
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries)
        return;
    float best[8];
    int place[8], found = 0;
    for (int i = 0; i < n; ++i) {
        float sum = 0.0f;
        for (int c = 0; c < d; ++c) {
            float delta = __fsub_rn(reference[i * d + c], query[q * d + c]);
            sum = __fadd_rn(sum, __fmul_rn(delta, delta));
        }
        if (found == k && sum >= best[k - 1])
            continue;
        int at = found < k ? found++ : k - 1;
        while (at > 0 && best[at - 1] > sum) {
            best[at] = best[at - 1];
            place[at] = place[at - 1];
            --at;
        }
        best[at] = sum;
        place[at] = i;
    }
    for (int j = 0; j < found; ++j) {
        index[q * k + j] = place[j];
        distance[q * k + j] = sqrtf(best[j]);
    }
}
