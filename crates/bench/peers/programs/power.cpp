#include "peer.h"
static i64 n;
static float *a, *x, *y;
void setup(i64 size) { n = size, a = units(n * n, 12), x = make<float>(n), y = make<float>(n); }
void run() {
    std::fill(x, x + n, 1.0f);
    for (int round = 0; round < 3; round++) {
        std::fill(y, y + n, 0.0f);
        #pragma omp parallel for schedule(static) reduction(+:y[:n])
        for (i64 i = 0; i < n; i++) {
            float sum = 0;
            for (i64 j = 0; j < n; j++) sum += a[i * n + j] * x[j];
            for (i64 j = 0; j < n; j++) y[j] += a[i * n + j] * sum;
        }
        double norm = 0;
        for (i64 j = 0; j < n; j++) norm += (double)y[j] * y[j];
        for (i64 j = 0; j < n; j++) x[j] = (float)(y[j] / sqrt(norm));
    }
}
double checksum() { return weighed(x, n); }
