#include "peer.h"
static i64 n;
static float *x, *a, *b, *c;
void setup(i64 size) { n = size, x = units(n * 16, 17), a = make<float>(n * 4), b = make<float>(n * 2), c = make<float>(n); }
template <int W> static void sums(float* to) {
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n * 16 / W; i++) {
        float sum = 0;
        for (int k = 0; k < W; k++) sum += x[i * W + k];
        to[i] = sum;
    }
}
void run() { sums<4>(a), sums<8>(b), sums<16>(c); }
double checksum() { return weighed(a, n * 4) + weighed(b, n * 2) + weighed(c, n); }
