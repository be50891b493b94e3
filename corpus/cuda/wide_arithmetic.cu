// 24-, 32- and 64-bit integer arithmetic: high products, widening products, averages, absolute differences, minimum and
// maximum, absolute values, in signed and unsigned forms.
//
// Launch: 1-D grid with at least n threads. out holds 10 64-bit words per thread.

extern "C" __global__ void wide_arithmetic(const unsigned long long *a, const unsigned long long *b,
                                           unsigned long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long x = a[i], y = b[i];
    long long sx = x, sy = y;
    unsigned u = x, v = y;
    int s = u, t = v;
    unsigned long long *row = out + 10 * i;
    row[0] = __umul64hi(x, y);
    row[1] = __mul64hi(sx, sy);
    row[2] = x * y;
    row[3] = (unsigned long long)__umulhi(u, v) << 32 | (unsigned)__mulhi(s, t);
    row[4] = (unsigned long long)u * v + (long long)s * t;
    row[5] = (unsigned long long)__umul24(u, v) << 32 | (unsigned)__mul24(s, t);
    row[6] = (unsigned long long)__uhadd(u, v) << 32 | (unsigned)__rhadd(s, t);
    row[7] = (unsigned long long)__usad(u, v, 7) << 32 | __sad(s, t, 9);
    row[8] = max(sx, sy) ^ min(x, y) ^ llabs(sx / 2) ^ (unsigned)abs(s / 2);
    row[9] = (unsigned long long)min(s, t) << 32 ^ max(u, v) ^ (x < y) ^ (unsigned long long)(sx < sy) << 1;
}
