#include "peer.h"
static i64 n;
static float *x, *y, w[32];
void setup(i64 size) {
    n = size, x = units(n * 32, 3, -0.5f, 0.5f);
    y = filled<float>(n, [](i64 i) { return x[i * 32] + x[i * 32 + 1] * 2.0f - x[i * 32 + 5] > 0.1f ? 1.0f : 0.0f; });
}
void run() {
    memset(w, 0, sizeof w);
    for (int round = 0; round < 5; round++) {
        float g[32] = {};
        #pragma omp parallel for schedule(static) reduction(+:g)
        for (i64 i = 0; i < n; i++) {
            float z = 0;
            for (int k = 0; k < 32; k++) z += x[i * 32 + k] * w[k];
            float off = 1.0f / (expf(-z) + 1.0f) - y[i];
            for (int k = 0; k < 32; k++) g[k] += x[i * 32 + k] * off;
        }
        for (int k = 0; k < 32; k++) w[k] -= g[k] / n * 0.5f;
    }
}
double checksum() { return weighed(w, 32); }
