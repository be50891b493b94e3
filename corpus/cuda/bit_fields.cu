// Bit-field instructions by hand: bfe and bfi with all positions and lengths (beyond 32 too), bfind, lop3, prmt with modes,
// shifts that clamp, bmsk and szext.
//
// Launch: 1-D grid with at least n threads. out holds 12 words per thread; pos and len come from c.

extern "C" __global__ void bit_fields(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = a[i], y = b[i], pos = c[i] & 0xff, len = c[i] >> 8 & 0xff, r;
    unsigned long long w = (unsigned long long)x << 32 | y, q;
    unsigned *row = out + 12 * i;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(pos), "r"(len));
    row[0] = r;
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(pos), "r"(len));
    row[1] = r;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(pos), "r"(len));
    row[2] = r;
    asm("bfe.s64 %0, %1, %2, %3;" : "=l"(q) : "l"(w), "r"(pos), "r"(len));
    row[3] = (unsigned)q ^ (unsigned)(q >> 32);
    asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(q) : "l"(w), "l"(~w), "r"(pos), "r"(len));
    row[4] = (unsigned)q ^ (unsigned)(q >> 32);
    asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x));
    row[5] = r;
    asm("bfind.shiftamt.s32 %0, %1;" : "=r"(r) : "r"(y));
    row[6] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(x), "r"(y), "r"(c[i]));
    row[7] = r;
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(c[i]));
    row[8] = r;
    asm("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(c[i]));
    row[9] = r;
    unsigned left, right, arithmetic;
    asm("shl.b32 %0, %1, %2;" : "=r"(left) : "r"(x), "r"(pos));
    asm("shr.u32 %0, %1, %2;" : "=r"(right) : "r"(x), "r"(pos));
    asm("shr.s32 %0, %1, %2;" : "=r"(arithmetic) : "r"(x), "r"(pos));
    row[10] = left ^ right ^ (arithmetic << 1);
    unsigned mask, extended;
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(mask) : "r"(pos), "r"(len));
    asm("szext.wrap.s32 %0, %1, %2;" : "=r"(extended) : "r"(x), "r"(len));
    row[11] = mask ^ extended;
}
