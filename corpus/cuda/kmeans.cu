// One step of k-means in two dimensions: each point joins its nearest centre; sums and counts are gathered per block in
// shared memory, then added up in fixed point.
//
// kmeans_assign: 1-D grid with at least n threads, blocks of at least k threads, k up to 64. sum_x, sum_y (in units of 1/65536)
// and count hold k values, zero at the start. kmeans_move: one block of k threads.

extern "C" __global__ void kmeans_assign(const float2 *point, int n, const float2 *centre, int k, int *nearest,
                                         unsigned long long *sum_x, unsigned long long *sum_y, int *count)
{
    __shared__ unsigned long long sx[64], sy[64];
    __shared__ int members[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < k) {
        sx[t] = sy[t] = 0;
        members[t] = 0;
    }
    __syncthreads();
    if (i < n) {
        float2 p = point[i];
        float least = 3.402823466e38f;
        int best = 0;
        for (int c = 0; c < k; ++c) {
            float dx = __fsub_rn(p.x, centre[c].x), dy = __fsub_rn(p.y, centre[c].y);
            float d = __fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy));
            if (d < least) {
                least = d;
                best = c;
            }
        }
        nearest[i] = best;
        atomicAdd(&sx[best], (unsigned long long)(long long)(p.x * 65536.0f));
        atomicAdd(&sy[best], (unsigned long long)(long long)(p.y * 65536.0f));
        atomicAdd(&members[best], 1);
    }
    __syncthreads();
    if (t < k && members[t] > 0) {
        atomicAdd(&sum_x[t], sx[t]);
        atomicAdd(&sum_y[t], sy[t]);
        atomicAdd(&count[t], members[t]);
    }
}

extern "C" __global__ void kmeans_move(float2 *centre, const long long *sum_x, const long long *sum_y, const int *count)
{
    int c = threadIdx.x;
    if (count[c] > 0)
        centre[c] = make_float2(sum_x[c] / 65536.0f / count[c], sum_y[c] / 65536.0f / count[c]);
}
