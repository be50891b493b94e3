#include "peer.h"
static i64 n;
static float *x, *y, out;
void setup(i64 size) { n = size, x = units(n, 1), y = units(n, 2); }
void run() {
    float s = 0;
    #pragma omp parallel for simd reduction(+:s) schedule(static)
    for (i64 i = 0; i < n; i++) s += x[i] * y[i];
    out = s;
}
double checksum() { return weighed(&out, 1); }
