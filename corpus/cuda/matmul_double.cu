// c = alpha a b + beta c for square matrices of doubles; each thread computes 2 x 2 elements in registers.
//
// Launch: 2-D grid of 8 x 8 blocks, one block for each 16 x 16 tile of c; n is a multiple of 16.

extern "C" __global__ void __launch_bounds__(64, 2)
    matmul_double(const double *a, const double *b, double *c, int n, double alpha, double beta)
{
    __shared__ double as[16][17], bs[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    double sum[2][2] = {};
    for (int start = 0; start < n; start += 16) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            int y = ty + 8 * (q / 2), x = tx + 8 * (q % 2);
            as[y][x] = a[(row + y) * n + start + x];
            bs[y][x] = b[(start + y) * n + col + x];
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            double a0 = as[ty][k], a1 = as[ty + 8][k], b0 = bs[k][tx], b1 = bs[k][tx + 8];
            sum[0][0] += a0 * b0;
            sum[0][1] += a0 * b1;
            sum[1][0] += a1 * b0;
            sum[1][1] += a1 * b1;
        }
        __syncthreads();
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        double *place = &c[(row + ty + 8 * (q / 2)) * n + col + tx + 8 * (q % 2)];
        *place = alpha * sum[q / 2][q % 2] + beta * *place;
    }
}
