// 128-bit integers: sum, product, comparison, shifts, quotient and remainder.
//
// Launch: 1-D grid with at least n threads. Numbers are (low, high) pairs; out holds 5 of them per thread.

typedef unsigned __int128 u128;

__device__ u128 load(ulonglong2 v) { return (u128)v.y << 64 | v.x; }
__device__ ulonglong2 store(u128 v) { return make_ulonglong2((unsigned long long)v, (unsigned long long)(v >> 64)); }

extern "C" __global__ void int128(const ulonglong2 *a, const ulonglong2 *b, ulonglong2 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    u128 x = load(a[i]), y = load(b[i]);
    out[5 * i] = store(x + y);
    out[5 * i + 1] = store(x * y);
    out[5 * i + 2] = store((x << (i % 128)) ^ (y >> (i % 128)) ^ (x > y));
    out[5 * i + 3] = store(y == 0 ? 0 : x / y);
    out[5 * i + 4] = store(y == 0 ? 0 : (u128)((__int128)x % (__int128)y));
}
