// Integer division and remainder, signed and unsigned, of 8, 16, 32 and 64 bits; by constants and by powers of two.
//
// Launch: 1-D grid with at least n threads. b holds no zero (not even in its low bits), a is never the least value when
// b is -1. out holds 8 64-bit words per thread.

extern "C" __global__ void division(const long long *a, const long long *b, long long *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long x = a[i], y = b[i];
    unsigned long long ux = x, uy = y;
    int s = (int)x, t = (int)y;
    unsigned u = x, v = y;
    long long *row = out + 8 * i;
    row[0] = x / y;
    row[1] = x % y;
    row[2] = ux / uy ^ ux % uy;
    row[3] = (long long)(s / t) << 32 | (unsigned)(s % t);
    row[4] = (unsigned long long)(u / v) << 32 | u % v;
    row[5] = (short)x / (short)y + (long long)((unsigned char)x / (unsigned char)y) * 100000 +
             (signed char)x % (signed char)y;
    row[6] = x / 10 + x % 1000003 + s / 7 + u / 641u + s % 12;
    row[7] = x / 16 + x % 64 + s / 4 + (int)(u % 32);
}
