// Dot products of packed bytes and halves with accumulation: dp4a and dp2a in all their forms.
//
// Launch: 1-D grid with at least n threads. out holds 6 words per thread.

extern "C" __global__ void dot_products_packed(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned *row = out + 6 * i, sum;
#define DOT(instruction, addend)                                                                                       \
    asm(instruction " %0, %1, %2, %3;" : "=r"(sum) : "r"(a[i]), "r"(b[i]), "r"(addend));                              \
    *row++ = sum;
    DOT("dp4a.s32.s32", i)
    DOT("dp4a.u32.u32", i)
    DOT("dp4a.s32.u32", i)
    DOT("dp2a.lo.s32.s32", -i)
    DOT("dp2a.hi.u32.u32", 3 * i)
    DOT("dp2a.lo.u32.s32", i)
}
