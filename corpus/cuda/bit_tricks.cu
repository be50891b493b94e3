// Bit intrinsics on 32- and 64-bit words: population count, leading zeros, reversal, first set bit, byte permutation,
// funnel shifts, with every shift amount.
//
// Launch: 1-D grid with at least n threads. out holds 12 words per thread.

extern "C" __global__ void bit_tricks(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = a[i], y = b[i];
    unsigned long long w = (unsigned long long)x << 32 | y;
    unsigned *row = out + 12 * i;
    row[0] = __popc(x) + 100 * __popcll(w);
    row[1] = __clz(x) + 100 * __clzll(w);
    row[2] = __brev(x);
    row[3] = (unsigned)(__brevll(w) >> 16);
    row[4] = __ffs(x) + 100 * __ffsll(w);
    row[5] = __byte_perm(x, y, y & 0x7777);
    row[6] = __funnelshift_l(x, y, i);
    row[7] = __funnelshift_r(x, y, i);
    row[8] = __funnelshift_lc(x, y, i);
    row[9] = __funnelshift_rc(x, y, i);
    row[10] = (x & y) ^ (~x | y) ^ (x << (i & 31)) ^ (y >> (i & 31)) ^ (unsigned)((int)x >> (i & 31));
    row[11] = (unsigned)(w >> (i & 63)) ^ (unsigned)((long long)w >> (i & 63)) ^ (unsigned)(w << (i & 63));
}
