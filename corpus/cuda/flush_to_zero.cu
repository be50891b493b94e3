// Single-precision instructions with and without .ftz on subnormal operands and results.
//
// Launch: 1-D grid with at least n threads. out holds 10 floats per thread.

#define BOTH(operation, ...)                                                                                           \
    asm(operation ".f32 %0, %1, %2" __VA_ARGS__ ";" : "=f"(r) : "f"(x), "f"(y));                                       \
    *row++ = r;

extern "C" __global__ void flush_to_zero(const float *a, const float *b, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i], y = b[i], r, *row = out + 10 * i;
    BOTH("add.rn")
    BOTH("add.rn.ftz")
    BOTH("mul.rn")
    BOTH("mul.rn.ftz")
    BOTH("fma.rn", ", %2")
    BOTH("fma.rn.ftz", ", %2")
    BOTH("min.ftz")
    BOTH("max")
    int less, less_ftz;
    asm("{\n\t.reg .pred p;\n\tsetp.lt.f32 p, %1, %2;\n\tselp.s32 %0, 1, 0, p;\n\t}" : "=r"(less) : "f"(x), "f"(y));
    asm("{\n\t.reg .pred p;\n\tsetp.lt.ftz.f32 p, %1, %2;\n\tselp.s32 %0, 1, 0, p;\n\t}"
        : "=r"(less_ftz)
        : "f"(x), "f"(y));
    *row++ = less;
    *row++ = less_ftz;
}
