#include "peer.h"
static i64 n;
static float *a, *l;
void setup(i64 size) {
    n = size, l = make<float>(n * 64);
    a = filled<float>(n * 64, [](i64 p) {
        i64 m = p / 64, i = p / 8 % 8, j = p % 8;
        return -0.5f + unit((uint32_t)(m * 64 + std::max(i, j) * 8 + std::min(i, j)), 13) + (i == j ? 4.0f : 0.0f);
    });
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 m = 0; m < n; m++) {
        float r[64], *to = l + m * 64;
        memcpy(r, a + m * 64, sizeof r), memset(to, 0, sizeof r);
        for (int j = 0; j < 8; j++) {
            float inverse = 1 / sqrtf(r[j * 8 + j]), c[8];
            for (int i = 0; i < 8; i++) c[i] = i >= j ? r[i * 8 + j] * inverse : 0;
            for (int i = j; i < 8; i++) for (int k = 0; k < 8; k++) r[i * 8 + k] -= c[i] * c[k];
            for (int i = j; i < 8; i++) to[i * 8 + j] = c[i];
        }
    }
}
double checksum() { return weighed(l, n * 64); }
