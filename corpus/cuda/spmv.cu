// Sparse matrix times vector, in three layouts.
//
// spmv_csr_scalar: one thread per row. spmv_csr_vector: one warp per row, blocks of a multiple of 32 threads.
// spmv_ell: one thread per row; columns and values stand column by column, width per row, column -1 marks an empty place.

extern "C" __global__ void spmv_csr_scalar(int rows, const int *row_start, const int *column, const float *value,
                                           const float *x, float *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = row_start[row]; k < row_start[row + 1]; ++k)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}

extern "C" __global__ void spmv_csr_vector(int rows, const int *row_start, const int *column, const float *value,
                                           const float *x, float *y)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = row_start[row] + lane; k < row_start[row + 1]; k += 32)
        sum += value[k] * __ldg(&x[column[k]]);
    for (int mask = 16; mask > 0; mask /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
    if (lane == 0)
        y[row] = sum;
}

extern "C" __global__ void spmv_ell(int rows, int width, const int *column, const double *value, const double *x,
                                    double *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    double sum = 0.0;
    for (int k = 0; k < width; ++k) {
        int c = column[k * rows + row];
        if (c >= 0)
            sum += value[k * rows + row] * x[c];
    }
    y[row] = sum;
}
