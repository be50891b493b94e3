// Cholesky decomposition a = l l^T of one symmetric positive matrix of floats per block, in dynamic shared memory.
//
// Launch: 1-D grid, n threads per block, n * n floats of dynamic shared memory. The upper triangle of l is set to zero.

extern "C" __global__ void cholesky(float *matrices)
{
    extern __shared__ float l[];
    int n = blockDim.x, t = threadIdx.x;
    float *matrix = matrices + blockIdx.x * n * n;
    for (int c = 0; c < n; ++c)
        l[t * n + c] = matrix[t * n + c];
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        if (t == k)
            l[k * n + k] = sqrtf(l[k * n + k]);
        __syncthreads();
        if (t > k)
            l[t * n + k] /= l[k * n + k];
        __syncthreads();
        for (int c = k + 1; c <= t; ++c)
            l[t * n + c] -= l[t * n + k] * l[c * n + k];
        __syncthreads();
    }
    for (int c = 0; c < n; ++c)
        matrix[t * n + c] = c <= t ? l[t * n + c] : 0.0f;
}
