#include "peer.h"
static i64 n;
static float *a, *b, *c;
void setup(i64 size) { n = size, a = units(n, 1), b = units(n, 2), c = make<float>(n); }
void run() {
    #pragma omp parallel for simd schedule(static)
    for (i64 i = 0; i < n; i++) c[i] = a[i] + b[i];
}
double checksum() { return weighed(c, n); }
