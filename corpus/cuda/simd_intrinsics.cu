// SIMD within a word: two halves or four bytes at a time, wrapping and saturating, with comparisons, averages, absolute
// differences, minimum and maximum.
//
// Launch: 1-D grid with at least n threads. out holds 20 words per thread.

extern "C" __global__ void simd_intrinsics(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = a[i], y = b[i];
    unsigned *row = out + 20 * i;
    row[0] = __vadd2(x, y);
    row[1] = __vadd4(x, y);
    row[2] = __vsub2(x, y);
    row[3] = __vsub4(x, y);
    row[4] = __vaddss2(x, y);
    row[5] = __vaddus4(x, y);
    row[6] = __vsubss4(x, y);
    row[7] = __vsubus2(x, y);
    row[8] = __vabsdiffu4(x, y);
    row[9] = __vabsdiffs2(x, y);
    row[10] = __vmaxu4(x, y);
    row[11] = __vmins2(x, y);
    row[12] = __vavgu4(x, y);
    row[13] = __vhaddu4(x, y);
    row[14] = __vcmpgtu4(x, y);
    row[15] = __vseteq4(x & 0x01010101, y & 0x01010101);
    row[16] = __vsadu4(x, y);
    row[17] = __vsads2(x, y);
    row[18] = __vabsss4(x) ^ __vneg2(y);
    row[19] = __vmaxs4(x, y) ^ __vminu2(x, y);
}
