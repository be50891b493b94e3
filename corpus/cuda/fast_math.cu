// The fast intrinsics, which map to approximate instructions.
//
// Launch: 1-D grid with at least n threads. x is positive and below 3; out holds 10 floats per thread.

extern "C" __global__ void fast_math(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], *row = out + 10 * i, approximate;
    row[0] = __sinf(v);
    row[1] = __cosf(v);
    row[2] = __expf(v);
    row[3] = __exp10f(v);
    row[4] = __logf(v);
    row[5] = __log2f(v);
    row[6] = __powf(v, 2.5f);
    row[7] = __fdividef(v, 3.7f);
    row[8] = __frsqrt_rn(v) + rsqrtf(v);
    asm("tanh.approx.f32 %0, %1;" : "=f"(approximate) : "f"(v));
    row[9] = approximate;
}

// Approximate instructions by hand, also with subnormal inputs flushed.
extern "C" __global__ void fast_instructions(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], *row = out + 6 * i, r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    row[0] = r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    row[1] = r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    row[2] = r;
    asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    row[3] = r;
    asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(v), "f"(7.3f));
    row[4] = r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    row[5] = r;
}
