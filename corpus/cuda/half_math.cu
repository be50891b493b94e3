// Arithmetic of __half and __half2: exact operations, comparisons, conversions, and approximate functions.
//
// Launch: 1-D grid with at least n threads. out holds 12 values per thread.

#include <cuda_fp16.h>

extern "C" __global__ void half_math(const __half *a, const __half *b, __half *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half x = a[i], y = b[i], *row = out + 12 * i;
    row[0] = __hadd(x, y);
    row[1] = __hsub(x, y);
    row[2] = __hmul(x, y);
    row[3] = __hfma(x, y, x);
    row[4] = __hdiv(x, y);
    row[5] = __hneg(__habs(x));
    row[6] = __hmin(x, y);
    row[7] = __hgt(x, y) ? __hmax(x, y) : __hadd_sat(x, y);
    row[8] = hsqrt(__habs(x));
    row[9] = __int2half_rn(__half2int_rz(x));
    row[10] = hfloor(x);
    row[11] = __float2half_rd(__half2float(x) * 1.001f);
}

extern "C" __global__ void half2_math(const __half2 *a, const __half2 *b, __half2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half2 x = a[i], y = b[i], *row = out + 6 * i;
    row[0] = __hadd2(x, y);
    row[1] = __hfma2(x, y, y);
    row[2] = __hmul2(__hneg2(x), y);
    row[3] = __hgt2(x, y);
    row[4] = __lowhigh2highlow(x);
    row[5] = __floats2half2_rn(__low2float(x) * 2.0f, __high2float(y) * 0.5f);
}

// exp, log and sin by approximate instructions and float detours.
extern "C" __global__ void half_functions(const __half *a, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[4 * i] = __half2float(hexp(a[i]));
    out[4 * i + 1] = __half2float(hlog(a[i]));
    out[4 * i + 2] = __half2float(hsin(a[i]));
    out[4 * i + 3] = __half2float(hrcp(a[i]));
}
