// A pyramid of three levels, padded so that no search leaves it; whole pixels from coarse to fine, then halves and quarters.
#include "peer.h"
#include <vector>
static i64 side;
static float *a, *b, *out;
static int* mv;
static int held(i64 v, i64 most) { return (int)(v < 0 ? 0 : v > most ? most : v); }
// Smooth enough to find again, and whole numbers up to 255: all sums are exact.
static float scene(i64 y, i64 x) {
    i64 cy = y / 8, cx = x / 8, fy = y % 8, fx = x % 8;
    auto at = [](i64 i, i64 j) { return (i64)(hashed((uint32_t)(i * 4096 + j), 1) >> 24); };
    i64 top = at(cy, cx) * (8 - fx) + at(cy, cx + 1) * fx, bottom = at(cy + 1, cx) * (8 - fx) + at(cy + 1, cx + 1) * fx;
    return (float)((top * (8 - fy) + bottom * fy) / 64);
}
void setup(i64 size) {
    side = size, mv = make<int>(size / 16 * (size / 16) * 2), out = make<float>(size / 16 * (size / 16));
    a = filled<float>(side * side, [](i64 i) { return scene(i / side + 32, i % side + 32); });
    // Every stretch of 64 has moved by its own distance.
    b = filled<float>(side * side, [](i64 i) {
        i64 y = i / side, x = i % side, dy = (i64)(hashed((uint32_t)(x / 64), 2) >> 16) % 13 - 6, dx = (i64)(hashed((uint32_t)(y / 64), 3) >> 16) % 15 - 7;
        float v = scene(y + 32 + dy, x + 32 + dx) + (float)(hashed((uint32_t)i, 4) >> 30) - 1.0f;
        return v < 0 ? 0 : v > 255 ? 255 : v;
    });
}
struct Img { int n, pad, ld; std::vector<float> d; float* at(int y, int x) { return &d[(i64)(y + pad) * ld + x + pad]; } };
static void padded(Img& m, const float* s, int n, int pad) {
    m.n = n; m.pad = pad; m.ld = n + 2 * pad; m.d.resize((i64)m.ld * m.ld);
    for (int y = -pad; y < n + pad; y++) {
        const float* r = s + (i64)held(y, n - 1) * n; float* q = m.at(y, 0);
        memcpy(q, r, n * 4);
        for (int i = 1; i <= pad; i++) { q[-i] = r[0]; q[n - 1 + i] = r[n - 1]; }
    }
}
static std::vector<float> half(const float* s, int n) {
    int m = n / 2; std::vector<float> o(m * m);
    #pragma omp parallel for
    for (int y = 0; y < m; y++) for (int x = 0; x < m; x++) {
        const float *a = s + 2 * y * n + 2 * x, *b = a + n; o[y * m + x] = (a[0] + a[1] + b[0] + b[1]) * .25f;
    }
    return o;
}
template <int BS> static float sad(const float* a, int la, const float* b, int lb) {
    float s = 0;
    for (int y = 0; y < BS; y++) for (int x = 0; x < BS; x++) s += fabsf(a[y * la + x] - b[y * lb + x]);
    return s;
}
template <int BS> static void search(const float* a, int n, Img& r, int by, int bx, int R, int& my, int& mx) {
    float best = 1e30f; int ry = 0, rx = 0;
    for (int dy = -R; dy <= R; dy++) for (int dx = -R; dx <= R; dx++) {
        float s = sad<BS>(a + by * BS * n + bx * BS, n, r.at(by * BS + my + dy, bx * BS + mx + dx), r.ld);
        if (s < best) best = s, ry = my + dy, rx = mx + dx;
    }
    my = ry; mx = rx;
}
void run() {
    int n = (int)side, nb = n / 16;
    std::vector<float> a1 = half(a, n), a2 = half(a1.data(), n / 2), b1 = half(b, n), b2 = half(b1.data(), n / 2);
    static Img B0, B1, B2; padded(B0, b, n, 18); padded(B1, b1.data(), n / 2, 8); padded(B2, b2.data(), n / 4, 4);
    #pragma omp parallel for schedule(dynamic, 16)
    for (int k = 0; k < nb * nb; k++) {
        int by = k / nb, bx = k % nb, my = 0, mx = 0;
        search<4>(a2.data(), n / 4, B2, by, bx, 3, my, mx); my *= 2; mx *= 2;
        search<8>(a1.data(), n / 2, B1, by, bx, 1, my, mx); my *= 2; mx *= 2;
        search<16>(a, n, B0, by, bx, 1, my, mx); my *= 4; mx *= 4;
        float best = 0;
        for (int step = 2; step; step /= 2) {
            best = 1e30f; int ry = 0, rx = 0;
            for (int dy = -step; dy <= step; dy += step) for (int dx = -step; dx <= step; dx += step) {
                int qy = my + dy, qx = mx + dx; float fy = (qy & 3) * .25f, fx = (qx & 3) * .25f, s = 0;
                const float* r = B0.at(by * 16 + (qy >> 2), bx * 16 + (qx >> 2));
                const float* c = a + by * 16 * n + bx * 16;
                for (int y = 0; y < 16; y++, r += B0.ld, c += n) {
                    const float* r2 = r + B0.ld;
                    for (int x = 0; x < 16; x++) {
                        float t = r[x] * (1 - fx) + r[x+1] * fx, u = r2[x] * (1 - fx) + r2[x+1] * fx;
                        s += fabsf(c[x] - (t * (1 - fy) + u * fy));
                    }
                }
                if (s < best) best = s, ry = qy, rx = qx;
            }
            my = ry; mx = rx;
        }
        mv[2 * k] = my; mv[2 * k + 1] = mx; out[k] = best;
    }
}
double checksum() { i64 blocks = side / 16 * (side / 16); return weighed(mv, 2 * blocks) + weighed(out, blocks, 2 * blocks); }
