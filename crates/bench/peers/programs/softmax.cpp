#include "peer.h"
static i64 n;
static float *x, *y;
void setup(i64 size) { n = size, x = units(n * n, 12, 0.0f, 8.0f), y = make<float>(n * n); }
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) {
        const float* a = x + i * n;
        float *b = y + i * n, most = a[0], sum = 0;
        for (i64 j = 0; j < n; j++) most = std::max(most, a[j]);
        for (i64 j = 0; j < n; j++) b[j] = expf(a[j] - most), sum += b[j];
        for (i64 j = 0; j < n; j++) b[j] /= sum;
    }
}
double checksum() { return weighed(y, n * n); }
