// LU decomposition in place, with row pivoting, of one small matrix per block (n = blockDim.x up to 32).
// The lower triangle holds L without its unit diagonal, the upper one U; pivots receives the row chosen in each step.
//
// Launch: 1-D grid, n threads per block: thread t owns column t.

extern "C" __global__ void lu_decomposition(double *matrices, int *pivots)
{
    __shared__ double a[32][33];
    __shared__ int pivot;
    int n = blockDim.x, t = threadIdx.x;
    double *matrix = matrices + blockIdx.x * n * n;
    for (int r = 0; r < n; ++r)
        a[r][t] = matrix[r * n + t];
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        if (t == k) {
            int best = k;
            for (int r = k + 1; r < n; ++r)
                if (fabs(a[r][k]) > fabs(a[best][k]))
                    best = r;
            pivot = best;
            pivots[blockIdx.x * n + k] = best;
        }
        __syncthreads();
        double v = a[k][t];
        a[k][t] = a[pivot][t];
        a[pivot][t] = v;
        __syncthreads();
        if (t > k)
            a[t][k] /= a[k][k];
        __syncthreads();
        if (t > k)
            for (int r = k + 1; r < n; ++r)
                a[r][t] -= a[r][k] * a[k][t];
        __syncthreads();
    }
    for (int r = 0; r < n; ++r)
        matrix[r * n + t] = a[r][t];
}
