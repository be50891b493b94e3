// 64 taps by VOLK's dot product, one for each output.
#include "peer.h"
#include <volk/volk.h>
enum { TAPS = 64 };
static i64 n;
static float *x, *o, h[TAPS];
void setup(i64 size) {
    n = size, x = units(n + TAPS, 1, -0.5f, 0.5f), o = make<float>(n);
    low_pass(h, TAPS, 8000, 1000, (TAPS - 1) / 2.0);
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) volk_32f_x2_dot_prod_32f(o + i, x + i, h, TAPS);
}
double checksum() { return weighed(o, n); }
