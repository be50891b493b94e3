#include "peer.h"
static i64 n, runs;
static float *x, *y;
void setup(i64 size) { n = size, x = units(n, 1), y = units(n, 2); }
// Each repetition adds to y, here as in the kernel.
void run() {
    runs++;
    #pragma omp parallel for simd schedule(static)
    for (i64 i = 0; i < n; i++) y[i] = 0.5f * x[i] + y[i];
}
// What a repetition added: peers are not repeated as often as the kernel.
double checksum() {
    double sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (i64 i = 0; i < n; i++) sum += fabs((double)y[i] - unit((uint32_t)i, 2)) / (double)runs * (double)(1 + i % 7);
    return sum;
}
