// Every 64-bit atomic on global memory, and a compare-and-swap loop that multiplies.
//
// Launch: any 1-D grid. u holds 9 words, s 2, as the caller sets them; u[8] becomes the product of (2 i + 1) over all
// threads, modulo 2^64.

typedef unsigned long long u64;

extern "C" __global__ void atomics_wide(u64 *u, long long *s)
{
    u64 i = blockIdx.x * blockDim.x + threadIdx.x;
    u64 mixed = (i + 1) * 0x9E3779B97F4A7C15ull;
    atomicAdd(&u[0], mixed);
    atomicMin(&u[1], mixed);
    atomicMax(&u[2], mixed);
    atomicAnd(&u[3], mixed | 0xff00ff00ff00ff00ull);
    atomicOr(&u[4], 1ull << (i % 60));
    atomicXor(&u[5], mixed);
    atomicExch(&u[6], i);
    atomicCAS(&u[7], 77ull, 78ull);
    u64 seen = atomicAdd(&u[8], 0ull), expected;
    do {
        expected = seen;
        seen = atomicCAS(&u[8], expected, expected * (2 * i + 1));
    } while (seen != expected);
    atomicMin(&s[0], -(long long)i);
    atomicMax(&s[1], -(long long)i);
}

// 16-bit compare-and-swap.
extern "C" __global__ void atomics_short(unsigned short *h)
{
    unsigned short seen = 0, expected;
    do {
        expected = seen;
        seen = atomicCAS(&h[1], expected, (unsigned short)(expected + 1));
    } while (seen != expected);
}
