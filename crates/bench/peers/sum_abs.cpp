#include "peer.h"
static i64 n;
static float *x, out;
void setup(i64 size) { n = size, x = units(n, 1, -1.0f, 1.0f); }
void run() {
    float s = 0;
    #pragma omp parallel for simd reduction(+:s) schedule(static)
    for (i64 i = 0; i < n; i++) s += fabsf(x[i]);
    out = s;
}
double checksum() { return weighed(&out, 1); }
