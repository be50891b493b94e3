#include "peer.h"
static i64 n;
static float *at[3], *speed[3], *next_[3], *first[3], *m;
void setup(i64 size) {
    n = size, m = units(n, 23);
    for (int k = 0; k < 3; k++) first[k] = units(n, 20 + k), at[k] = make<float>(n), speed[k] = make<float>(n), next_[k] = make<float>(n);
}
void run() {
    for (int k = 0; k < 3; k++) memcpy(at[k], first[k], n * 4), memset(speed[k], 0, n * 4);
    for (int step = 0; step < 2; step++) {
        #pragma omp parallel for schedule(static)
        for (i64 i = 0; i < n; i++) {
            float x = at[0][i], y = at[1][i], z = at[2][i], a = 0, b = 0, c = 0;
            #pragma omp simd reduction(+:a,b,c)
            for (i64 j = 0; j < n; j++) {
                float dx = at[0][j] - x, dy = at[1][j] - y, dz = at[2][j] - z, s = dx * dx + dy * dy + dz * dz + 1e-3f, w = m[j] / (s * sqrtf(s));
                a += dx * w, b += dy * w, c += dz * w;
            }
            float pull[3] = {a, b, c};
            for (int k = 0; k < 3; k++) speed[k][i] += pull[k] * 0.001f, next_[k][i] = at[k][i] + speed[k][i] * 0.001f;
        }
        for (int k = 0; k < 3; k++) std::swap(at[k], next_[k]);
    }
}
double checksum() { return weighed(speed[0], n); }
