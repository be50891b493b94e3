// Matrix products of 16-bit floats: __half with float accumulators, __half2 with packed accumulators, __nv_bfloat16
// with float accumulators. All matrices are n x n, row by row.
//
// Launch: 2-D grid of 2-D blocks that covers c (for matmul_half2, n / 2 wide; n is even).

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void matmul_half(const __half *a, const __half *b, __half *c, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k)
        sum += __half2float(a[row * n + k]) * __half2float(b[k * n + col]);
    c[row * n + col] = __float2half(sum);
}

extern "C" __global__ void matmul_half2(const __half *a, const __half2 *b, __half2 *c, int n)
{
    int pair = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || pair >= n / 2)
        return;
    __half2 sum = __float2half2_rn(0.0f);
    for (int k = 0; k < n; ++k)
        sum = __hfma2(__half2half2(a[row * n + k]), b[k * (n / 2) + pair], sum);
    c[row * (n / 2) + pair] = sum;
}

extern "C" __global__ void matmul_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k)
        sum += __bfloat162float(a[row * n + k]) * __bfloat162float(b[k * n + col]);
    c[row * n + col] = __float2bfloat16(sum);
}
