// Ordinary C++ that a flag turns into approximate instructions: division, square root and functions, with subnormals flushed.
//
// Launch: 1-D grid with at least n threads. x is positive and below 3; out holds 8 floats per thread.
//
// nvcc: --use_fast_math

extern "C" __global__ void fast_flags(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], w = y[i], *row = out + 8 * i;
    row[0] = v / w;
    row[1] = sqrtf(v) + 1.0f / sqrtf(w);
    row[2] = sinf(v) * cosf(w);
    row[3] = expf(v) - exp2f(w);
    row[4] = logf(v) + log10f(w);
    row[5] = powf(v, w);
    row[6] = v * w + v;
    // A product that is subnormal, and so becomes zero.
    row[7] = v * 1e-20f * (w * 1e-20f);
}
