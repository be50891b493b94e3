// Greatest common divisors, modular powers with 128-bit products, a deterministic Miller-Rabin test, and integer square roots.
//
// Launch: 1-D grid with at least n threads.

typedef unsigned long long u64;

__device__ u64 gcd(u64 a, u64 b)
{
    while (b != 0) {
        u64 t = a % b;
        a = b;
        b = t;
    }
    return a;
}

__device__ u64 multiply(u64 a, u64 b, u64 m) { return (unsigned __int128)a * b % m; }

__device__ u64 power(u64 base, u64 exponent, u64 m)
{
    u64 result = 1;
    for (base %= m; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result = multiply(result, base, m);
        base = multiply(base, base, m);
    }
    return result;
}

__device__ bool prime(u64 n)
{
    const u64 witness[12] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    for (int k = 0; k < 12; ++k)
        if (n % witness[k] == 0)
            return n == witness[k];
    int shift = __ffsll(n - 1) - 1;
    for (int k = 0; k < 12; ++k) {
        u64 x = power(witness[k], (n - 1) >> shift, n);
        if (x == 1 || x == n - 1)
            continue;
        bool composite = true;
        for (int r = 1; r < shift && composite; ++r) {
            x = multiply(x, x, n);
            composite = x != n - 1;
        }
        if (composite)
            return false;
    }
    return n > 1;
}

extern "C" __global__ void number_theory(const u64 *a, const u64 *b, u64 *divisor, unsigned *root, unsigned char *is_prime,
                                         int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    divisor[i] = gcd(a[i], b[i]);
    u64 r = (u64)sqrt((double)a[i]);
    while (r > 0xffffffffull || r * r > a[i])
        --r;
    while (r < 0xffffffffull && (r + 1) * (r + 1) <= a[i])
        ++r;
    root[i] = r;
    is_prime[i] = prime(a[i]);
}
