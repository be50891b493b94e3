// y = A x for a sparse matrix in CSR form, a warp per row.
extern "C" __global__ void sparse_product(const int* __restrict__ starts, const int* __restrict__ columns,
                                          const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y,
                                          int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += 32) sum += values[i] * x[columns[i]];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (lane == 0) y[row] = sum;
}
