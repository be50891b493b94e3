#include "peer.h"
static i64 n;
static float *x, *y;
void setup(i64 size) { n = size, x = units(n, 1), y = units(n, 2); }
// Each repetition adds to y, here as in the kernel.
void run() {
    #pragma omp parallel for simd schedule(static)
    for (i64 i = 0; i < n; i++) y[i] = 0.5f * x[i] + y[i];
}
double checksum() { return weighed(y, n); }
