// Arithmetic that saturates: integer add and subtract, conversions to narrow integers, floats clamped to [0, 1].
//
// Launch: 1-D grid with at least n threads. out holds 6 words per thread, unit 3 floats.

extern "C" __global__ void saturating(const int *a, const int *b, const float *f, int *out, float *unit, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int r;
    short h;
    int *row = out + 6 * i;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(b[i]));
    row[0] = r;
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a[i]), "r"(b[i]));
    row[1] = r;
    asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[i]), "r"(b[i]), "r"(a[i]));
    row[2] = r;
    asm("cvt.sat.s16.s32 %0, %1;" : "=h"(h) : "r"(a[i]));
    row[3] = h;
    asm("{\n\t.reg .b16 t;\n\tcvt.sat.u8.s32 t, %1;\n\tcvt.u32.u16 %0, t;\n\t}" : "=r"(r) : "r"(b[i]));
    row[4] = r;
    asm("cvt.rni.sat.s32.f32 %0, %1;" : "=r"(r) : "f"(f[i]));
    row[5] = r;
    unit[3 * i] = __saturatef(f[i]);
    unit[3 * i + 1] = __saturatef(f[i] * 0.25f + 0.5f);
    float product;
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(product) : "f"(f[i]), "f"(-0.125f), "f"(0.5f));
    unit[3 * i + 2] = product;
}
