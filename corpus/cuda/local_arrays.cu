// Arrays in local memory with dynamic indices, of bytes, ints and doubles; a permutation applied to itself and a two-dimensional
// table.
//
// Launch: 1-D grid with at least n threads.

extern "C" __global__ void local_arrays(const unsigned *seed, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned char permutation[32];
    unsigned state = seed[i];
    for (int k = 0; k < 32; ++k)
        permutation[k] = k;
    for (int k = 31; k > 0; --k) {
        state = state * 1664525u + 1013904223u;
        int j = (state >> 16) % (k + 1);
        unsigned char t = permutation[k];
        permutation[k] = permutation[j];
        permutation[j] = t;
    }
    int table[4][8] = {};
    for (int k = 0; k < 32; ++k)
        table[permutation[k] & 3][permutation[permutation[k]] & 7] += k;
    unsigned digest = 0;
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 8; ++c)
            digest = digest * 31 + table[r][c];
    double powers[8];
    powers[0] = 1.0;
    for (int k = 1; k < 8; ++k)
        powers[k] = powers[k - 1] * 1.5;
    out[i] = digest + (unsigned)(powers[digest & 7] * 128.0);
}
