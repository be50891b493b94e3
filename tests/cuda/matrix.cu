// A product of matrices by tensor cores.
#include "check.h"
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void multiply(const half *a, const half *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.5f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

int main() {
    half *a, *b;
    float *c;
    CALL(cudaMallocManaged(&a, 256 * sizeof *a));
    CALL(cudaMallocManaged(&b, 256 * sizeof *b));
    CALL(cudaMallocManaged(&c, 256 * sizeof *c));
    for (int i = 0; i < 256; i++) {
        a[i] = __float2half(float(i % 5 - 2));
        b[i] = __float2half(float(i % 3) / 2);
    }
    multiply<<<1, 32>>>(a, b, c);
    CALL(cudaDeviceSynchronize());
    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 16; column++) {
            float expected = 0.5f;
            for (int k = 0; k < 16; k++) expected += __half2float(a[row * 16 + k]) * __half2float(b[column * 16 + k]);
            CHECK(c[row * 16 + column] == expected);
        }
    }
    printf("ok\n");
}
