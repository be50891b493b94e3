#include "peer.h"
static i64 n;
static float *z, *x, *v;
void setup(i64 size) { n = size, z = units(n * 12, 28, -1.0f, 1.0f), x = make<float>(n), v = make<float>(n); }
void run() {
    #pragma omp parallel for simd schedule(static)
    for (i64 i = 0; i < n; i++) {
        float at = 0, speed = 0, p00 = 1, p01 = 0, p11 = 1;
        for (int step = 0; step < 12; step++) {
            at += speed * 0.1f, p00 += p01 * 0.2f + p11 * 0.01f + 0.01f, p01 += p11 * 0.1f, p11 += 0.01f;
            float off = z[step * n + i] - at, all = p00 + 0.5f, k0 = p00 / all, k1 = p01 / all;
            at += k0 * off, speed += k1 * off, p11 -= k1 * p01, p01 -= k0 * p01, p00 -= k0 * p00;
        }
        x[i] = at, v[i] = speed;
    }
}
double checksum() { return weighed(x, n) + weighed(v, n); }
