#include "peer.h"
static i64 n;
static float *x, *y, *gain, *shift;
void setup(i64 size) { n = size, x = units(n * n, 13), gain = units(n, 14), shift = units(n, 15), y = make<float>(n * n); }
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) {
        const float* a = x + i * n;
        float *b = y + i * n, sum = 0, squares = 0;
        for (i64 j = 0; j < n; j++) sum += a[j];
        float mean = sum / n;
        for (i64 j = 0; j < n; j++) squares += (a[j] - mean) * (a[j] - mean);
        float scale = 1 / sqrtf(squares / n + 1e-5f);
        for (i64 j = 0; j < n; j++) b[j] = (a[j] - mean) * scale * gain[j] + shift[j];
    }
}
double checksum() { return weighed(y, n * n); }
