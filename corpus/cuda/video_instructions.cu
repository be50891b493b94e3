// The scalar video instructions, with bytes and halves selected from their operands, saturation and a second operation; and the
// two- and four-lane forms with a write mask.
//
// Launch: 1-D grid with at least n threads. out holds 9 words per thread.

extern "C" __global__ void video_instructions(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = a[i], y = b[i], z = c[i], r;
    unsigned *row = out + 9 * i;
    asm("vadd.s32.u32.s32.sat %0, %1.b1, %2.h1;" : "=r"(r) : "r"(x), "r"(y));
    row[0] = r;
    asm("vsub.s32.s32.s32.add %0, %1.h0, %2.b3, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[1] = r;
    asm("vabsdiff.u32.u32.u32.max %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[2] = r;
    asm("vmin.s32.s32.s32 %0.b2, %1.b0, %2.b0, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[3] = r;
    asm("vmad.s32.s32.u32.shr7 %0, %1.h1, %2.b2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[4] = r;
    asm("vshl.u32.u32.u32.wrap.add %0, %1.h0, %2.b0, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[5] = r;
    asm("vset.u32.s32.lt.add %0, %1.h1, %2.h1, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[6] = r;
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[7] = r;
    asm("vadd2.s32.s32.s32.sat %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    row[8] = r;
}
