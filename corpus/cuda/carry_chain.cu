// Multi-word arithmetic with the carry flag: 256-bit sums and differences, a 128 x 128 bit product, and chains that mix
// sums and differences, which share one flag: set after a difference, it says that nothing was borrowed.
//
// Launch: 1-D grid with at least n threads. Numbers are 8 words, least significant first; product takes 4 + 4 words to 8.

extern "C" __global__ void carry_chain(const unsigned *a, const unsigned *b, unsigned *sum, unsigned *difference, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const unsigned *x = a + 8 * i, *y = b + 8 * i;
    unsigned s[8], d[8];
    asm volatile("add.cc.u32 %0, %8, %16;\n\t"
                 "addc.cc.u32 %1, %9, %17;\n\taddc.cc.u32 %2, %10, %18;\n\taddc.cc.u32 %3, %11, %19;\n\t"
                 "addc.cc.u32 %4, %12, %20;\n\taddc.cc.u32 %5, %13, %21;\n\taddc.cc.u32 %6, %14, %22;\n\t"
                 "addc.u32 %7, %15, %23;"
                 : "=&r"(s[0]), "=&r"(s[1]), "=&r"(s[2]), "=&r"(s[3]), "=&r"(s[4]), "=&r"(s[5]), "=&r"(s[6]), "=&r"(s[7])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(y[0]),
                   "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
    asm volatile("sub.cc.u32 %0, %8, %16;\n\t"
                 "subc.cc.u32 %1, %9, %17;\n\tsubc.cc.u32 %2, %10, %18;\n\tsubc.cc.u32 %3, %11, %19;\n\t"
                 "subc.cc.u32 %4, %12, %20;\n\tsubc.cc.u32 %5, %13, %21;\n\tsubc.cc.u32 %6, %14, %22;\n\t"
                 "subc.u32 %7, %15, %23;"
                 : "=&r"(d[0]), "=&r"(d[1]), "=&r"(d[2]), "=&r"(d[3]), "=&r"(d[4]), "=&r"(d[5]), "=&r"(d[6]), "=&r"(d[7])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(y[0]),
                   "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
    for (int k = 0; k < 8; ++k) {
        sum[8 * i + k] = s[k];
        difference[8 * i + k] = d[k];
    }
}

extern "C" __global__ void long_product(const unsigned *a, const unsigned *b, unsigned *product, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned p[8] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        unsigned y = b[4 * i + k];
        const unsigned *x = a + 4 * i;
        asm volatile("mad.lo.cc.u32 %0, %5, %9, %0;\n\t"
                     "madc.lo.cc.u32 %1, %6, %9, %1;\n\tmadc.lo.cc.u32 %2, %7, %9, %2;\n\t"
                     "madc.lo.cc.u32 %3, %8, %9, %3;\n\taddc.u32 %4, %4, 0;\n\t"
                     "mad.hi.cc.u32 %1, %5, %9, %1;\n\t"
                     "madc.hi.cc.u32 %2, %6, %9, %2;\n\tmadc.hi.cc.u32 %3, %7, %9, %3;\n\tmadc.hi.u32 %4, %8, %9, %4;"
                     : "+r"(p[k]), "+r"(p[k + 1]), "+r"(p[k + 2]), "+r"(p[k + 3]), "+r"(p[k + 4])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y));
    }
    for (int k = 0; k < 8; ++k)
        product[8 * i + k] = p[k];
}

// Eight words per thread out of two of 64 bits.
extern "C" __global__ void mixed_chains(const unsigned long long *a, const unsigned long long *b, unsigned long long *out,
                                        int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long x = a[i], y = b[i], low, high, *row = out + 8 * i;
    unsigned u = x, v = y, narrow, next;
#define CHAIN(first, second, type, constraint, p, q, r0, r1)                                                           \
    asm volatile(first "." type " %0, %2, %3;\n\t" second "." type " %1, %4, %5;"                                       \
                 : "=&" constraint(r0), "=" constraint(r1)                                                             \
                 : constraint(p), constraint(q), constraint(q), constraint(p))
    CHAIN("sub.cc", "addc", "u64", "l", x, y, low, high);
    row[0] = low;
    row[1] = high;
    CHAIN("add.cc", "subc", "u64", "l", x, y, low, high);
    row[2] = low;
    row[3] = high;
    CHAIN("sub.cc", "addc", "u32", "r", u, v, narrow, next);
    row[4] = narrow;
    row[5] = next;
    CHAIN("add.cc", "subc", "u32", "r", u, v, narrow, next);
    row[6] = narrow;
    row[7] = next;
}
