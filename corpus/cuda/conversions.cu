// Conversions between floating point and integers in every rounding mode, between widths, with NaN, infinities and values that do
// not fit (which saturate).
//
// Launch: 1-D grid with at least n threads. Each kernel writes a row of words per thread.

extern "C" __global__ void float_to_integer(const float *f, const double *d, long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = f[i];
    double w = d[i];
    long long *row = out + 12 * i;
    row[0] = __float2int_rn(v);
    row[1] = __float2int_rz(v);
    row[2] = __float2int_ru(v);
    row[3] = __float2int_rd(v);
    row[4] = __float2uint_rz(v);
    row[5] = __float2ll_rd(v);
    row[6] = __float2ull_ru(v);
    row[7] = __double2int_rn(w);
    row[8] = __double2uint_rz(w);
    row[9] = __double2ll_ru(w);
    row[10] = __double2ull_rn(w);
    row[11] = __float_as_int(__double2float_rd(w)) ^ __float_as_int(__double2float_ru(w));
}

extern "C" __global__ void integer_to_float(const long long *in, float *out_f, double *out_d, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long v = in[i];
    float *f = out_f + 8 * i;
    double *d = out_d + 5 * i;
    f[0] = __int2float_rn((int)v);
    f[1] = __int2float_rz((int)v);
    f[2] = __uint2float_ru((unsigned)v);
    f[3] = __uint2float_rd((unsigned)v);
    f[4] = __ll2float_rn(v);
    f[5] = __ull2float_rz(v);
    f[6] = (float)(short)v;
    f[7] = (float)(unsigned char)v;
    d[0] = (double)(int)v;
    d[1] = (double)(unsigned)v;
    d[2] = __ll2double_ru(v);
    d[3] = __ull2double_rd(v);
    d[4] = (double)(signed char)v;
}

// Narrowing and widening of integers, with and without sign.
extern "C" __global__ void integer_widths(const long long *in, long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long v = in[i], *row = out + 7 * i;
    row[0] = (signed char)v;
    row[1] = (unsigned char)v;
    row[2] = (short)v;
    row[3] = (unsigned short)v;
    row[4] = (int)v;
    row[5] = (unsigned)v;
    row[6] = (short)(signed char)v * (int)(unsigned short)(v >> 8);
}
