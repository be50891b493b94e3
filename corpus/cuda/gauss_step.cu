// One step of Gaussian elimination without pivoting on an n x n system, as two launches for each t = 0 .. n - 2.
//
// gauss_multipliers: 1-D grid with at least n - 1 - t threads; m[i][t] = a[i][t] / a[t][t] for i > t.
// gauss_eliminate: 2-D grid that covers (n - t) x (n - 1 - t); subtracts row t times the multiplier from the rows below,
// and from the right-hand side b.

extern "C" __global__ void gauss_multipliers(const float *a, float *m, int n, int t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + t + 1;
    if (i < n)
        m[i * n + t] = a[i * n + t] / a[t * n + t];
}

extern "C" __global__ void gauss_eliminate(float *a, float *b, const float *m, int n, int t)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x + t;
    int row = blockIdx.y * blockDim.y + threadIdx.y + t + 1;
    if (row >= n || col >= n)
        return;
    a[row * n + col] -= m[row * n + t] * a[t * n + col];
    if (col == t)
        b[row] -= m[row * n + t] * b[t];
}
