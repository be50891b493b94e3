#include "peer.h"
static i64 n;
static float *x, out[256];
void setup(i64 size) { n = size, x = units(n * 16, 20); }
void run() {
    float mean[16] = {}, sums[256] = {};
    #pragma omp parallel for schedule(static) reduction(+:mean)
    for (i64 i = 0; i < n; i++) for (int j = 0; j < 16; j++) mean[j] += x[i * 16 + j];
    for (int j = 0; j < 16; j++) mean[j] /= n;
    #pragma omp parallel for schedule(static) reduction(+:sums)
    for (i64 i = 0; i < n; i++) {
        float off[16];
        for (int j = 0; j < 16; j++) off[j] = x[i * 16 + j] - mean[j];
        for (int a = 0; a < 16; a++) for (int b = 0; b < 16; b++) sums[a * 16 + b] += off[a] * off[b];
    }
    for (int k = 0; k < 256; k++) out[k] = sums[k] / n;
}
double checksum() { return weighed(out, 256); }
