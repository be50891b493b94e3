#include "peer.h"
static i64 n;
static float *a, *b, *c, *d;
void setup(i64 size) { n = size, a = units(n * 256, 10, -0.5f, 0.5f), b = units(n * 256, 11, -0.5f, 0.5f), c = make<float>(n * 256), d = make<float>(n * 256); }
static void products(const float* a, float* to) {
    #pragma omp parallel for schedule(static)
    for (i64 m = 0; m < n; m++)
        for (int i = 0; i < 16; i++) {
            float sum[16] = {};
            for (int k = 0; k < 16; k++) for (int j = 0; j < 16; j++) sum[j] += a[m * 256 + i * 16 + k] * b[m * 256 + k * 16 + j];
            for (int j = 0; j < 16; j++) to[m * 256 + i * 16 + j] = sum[j] * 0.6f;
        }
}
void run() { products(a, d), products(d, c); }
double checksum() { return weighed(c, n * 256); }
