// Philox 4x32-10, a counter-based generator: the raw words, and an estimate of pi from points in the unit square.
//
// philox: 1-D grid with at least n threads; thread i writes the four words of counter (i, 0, 0, 0).
// monte_carlo_pi: any 1-D grid; each thread draws `rounds` times two points. *inside starts at zero.

__device__ uint4 philox_words(uint4 counter, uint2 key)
{
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
        unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

extern "C" __global__ void philox(uint4 *out, int n, uint2 key)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = philox_words(make_uint4(i, 0, 0, 0), key);
}

// Is the point (x, y), in units of 2^-32, within the quarter of a circle?
__device__ bool within(unsigned x, unsigned y)
{
    float u = x * 2.3283064365386963e-10f, v = y * 2.3283064365386963e-10f;
    return __fadd_rn(__fmul_rn(u, u), __fmul_rn(v, v)) < 1.0f;
}

extern "C" __global__ void monte_carlo_pi(unsigned long long *inside, int rounds, uint2 key)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long hits = 0;
    for (int k = 0; k < rounds; ++k) {
        uint4 w = philox_words(make_uint4(i, k, 1, 0), key);
        hits += within(w.x, w.y) + within(w.z, w.w);
    }
    atomicAdd(inside, hits);
}
