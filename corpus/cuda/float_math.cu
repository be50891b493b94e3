// The single-precision math library.
//
// Launch: 1-D grid with at least n threads. x is positive; out holds 12 floats per thread.

extern "C" __global__ void float_math(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], *row = out + 12 * i;
    row[0] = sinf(v);
    row[1] = cosf(v);
    row[2] = tanf(v * 0.5f);
    row[3] = expf(v) + exp2f(-v) + exp10f(v * 0.125f);
    row[4] = logf(v) + log2f(v) + log10f(v);
    row[5] = powf(v, 1.75f) + powf(v, -0.5f);
    row[6] = atan2f(v, 2.0f) + atanf(v) + asinf(1.0f / (1.0f + v));
    row[7] = tanhf(v) + sinhf(v * 0.5f) + coshf(v * 0.5f);
    row[8] = cbrtf(v) + hypotf(v, 3.0f) + rsqrtf(v) + sqrtf(v);
    row[9] = erff(v) + erfcf(v) + erfinvf(1.0f / (2.0f + v));
    row[10] = lgammaf(v) + expm1f(v * 1e-3f) + log1pf(v);
    row[11] = fmodf(v * 7.0f, 0.9f) + roundf(v * 3.3f) + floorf(-v) + ceilf(v) + truncf(v * 5.5f);
}
