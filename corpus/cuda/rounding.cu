// Arithmetic with directed rounding, in single and double precision: to nearest even, to zero, up and down.
//
// Launch: 1-D grid with at least n threads. out holds 20 numbers per thread: add, multiply, fused multiply-add, divide, square
// root, each in the order rn, rz, ru, rd.

#define ALL(name, ...)                                                                                                 \
    *row++ = name##_rn(__VA_ARGS__);                                                                                   \
    *row++ = name##_rz(__VA_ARGS__);                                                                                   \
    *row++ = name##_ru(__VA_ARGS__);                                                                                   \
    *row++ = name##_rd(__VA_ARGS__)

extern "C" __global__ void rounding_f32(const float *a, const float *b, const float *c, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float *row = out + 20 * i;
    ALL(__fadd, a[i], b[i]);
    ALL(__fmul, a[i], b[i]);
    ALL(__fmaf, a[i], b[i], c[i]);
    ALL(__fdiv, a[i], b[i]);
    ALL(__fsqrt, fabsf(a[i]));
}

extern "C" __global__ void rounding_f64(const double *a, const double *b, const double *c, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double *row = out + 20 * i;
    ALL(__dadd, a[i], b[i]);
    ALL(__dmul, a[i], b[i]);
    ALL(__fma, a[i], b[i], c[i]);
    ALL(__ddiv, a[i], b[i]);
    ALL(__dsqrt, fabs(a[i]));
}
