// Explicit heat equation on a rod of blockDim.x cells with fixed ends: many steps in one launch, two buffers in shared
// memory that change roles.
//
// Launch: 1-D grid of rods, up to 256 threads per block.

extern "C" __global__ void heat_diffusion(double *rods, double alpha, int steps)
{
    __shared__ double cells[2][256];
    int t = threadIdx.x, n = blockDim.x;
    double *rod = rods + blockIdx.x * n;
    cells[0][t] = rod[t];
    __syncthreads();
    int now = 0;
    for (int step = 0; step < steps; ++step, now ^= 1) {
        double u = cells[now][t];
        if (t > 0 && t < n - 1)
            u += alpha * (cells[now][t - 1] - 2.0 * u + cells[now][t + 1]);
        cells[now ^ 1][t] = u;
        __syncthreads();
    }
    rod[t] = cells[now][t];
}
