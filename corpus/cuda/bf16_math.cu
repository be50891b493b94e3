// Arithmetic of __nv_bfloat16: through floats before sm_80 or sm_90, with native instructions after.
//
// Launch: 1-D grid with at least n threads. out holds 8 values per thread.

#include <cuda_bf16.h>

extern "C" __global__ void bf16_math(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_bfloat16 x = a[i], y = b[i], *row = out + 8 * i;
    row[0] = __hadd(x, y);
    row[1] = __hmul(x, y);
#if __CUDA_ARCH__ >= 800
    row[2] = __hfma(x, y, x);
#else
    row[2] = __float2bfloat16(fmaf(__bfloat162float(x), __bfloat162float(y), __bfloat162float(x)));
#endif
    row[3] = __hmax(x, y);
    row[4] = __hneg(x);
    row[5] = __float2bfloat16_rz(__bfloat162float(x) * 1.003f);
    row[6] = __hlt(x, y) ? x : y;
    row[7] = __ushort_as_bfloat16(__bfloat16_as_ushort(x) ^ 0x40);
}

extern "C" __global__ void bf162_math(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_bfloat162 x = a[i], y = b[i], *row = out + 3 * i;
    row[0] = __hsub2(x, y);
    row[1] = __hmul2(x, y);
    row[2] = __float22bfloat162_rn(make_float2(__low2float(x) + 1.5f, __high2float(y) - 0.25f));
}
