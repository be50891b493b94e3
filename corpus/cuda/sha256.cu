// SHA-256 of one message per thread. Each message has 64-byte blocks that are padded already.
//
// Launch: 1-D grid with at least `messages` threads. digest holds 8 words per message.

__constant__ unsigned K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ unsigned rotate(unsigned x, int k) { return __funnelshift_r(x, x, k); }

extern "C" __global__ void sha256(const uint4 *data, int blocks, int messages, unsigned *digest)
{
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= messages)
        return;
    unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int block = 0; block < blocks; ++block) {
        unsigned w[64];
        for (int q = 0; q < 4; ++q) {
            uint4 v = data[(m * blocks + block) * 4 + q];
            w[4 * q] = __byte_perm(v.x, 0, 0x0123);
            w[4 * q + 1] = __byte_perm(v.y, 0, 0x0123);
            w[4 * q + 2] = __byte_perm(v.z, 0, 0x0123);
            w[4 * q + 3] = __byte_perm(v.w, 0, 0x0123);
        }
        for (int i = 16; i < 64; ++i) {
            unsigned s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
            unsigned s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        unsigned a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], z = h[7];
        for (int i = 0; i < 64; ++i) {
            unsigned s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
            unsigned t1 = z + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i];
            unsigned s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
            unsigned t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
            z = g;
            g = f;
            f = e;
            e = d + t1;
            d = c;
            c = b;
            b = a;
            a = t1 + t2;
        }
        unsigned round[8] = {a, b, c, d, e, f, g, z};
        for (int k = 0; k < 8; ++k)
            h[k] += round[k];
    }
    for (int k = 0; k < 8; ++k)
        digest[m * 8 + k] = h[k];
}
