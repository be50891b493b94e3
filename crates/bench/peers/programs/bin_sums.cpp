#include "peer.h"
static i64 n, bins;
static int *few, *many;
static float *x, *a, *b;
static int* in(uint32_t bins) { return filled<int>(n, [=](i64 i) { return (int)(hashed((uint32_t)i, 23) % bins); }); }
void setup(i64 size) {
    n = size, bins = std::max<i64>(n / 10, 1), few = in(16), many = in((uint32_t)bins);
    x = units(n, 24), a = make<float>(16), b = make<float>(bins);
}
static void sums(const int* at, float* to, i64 bins) {
    std::fill(to, to + bins, 0.0f);
    #pragma omp parallel for schedule(static) reduction(+:to[:bins])
    for (i64 i = 0; i < n; i++) to[at[i]] += x[i];
}
void run() { sums(few, a, 16), sums(many, b, bins); }
double checksum() { return weighed(a, 16) + weighed(b, bins); }
