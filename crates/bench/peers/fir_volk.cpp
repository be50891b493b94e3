// 64 taps by VOLK's dot product, one for each output.
#include "peer.h"
#include <volk/volk.h>
enum { TAPS = 64 };
static i64 n;
static float *x, *o, h[TAPS];
void setup(i64 size) {
    n = size, x = units(n + TAPS, 1, -0.5f, 0.5f), o = make<float>(n);
    double w = 2 * M_PI * 1000 / 8000;
    for (int i = 0; i < TAPS; i++) {
        double t = i - (TAPS - 1) / 2.0;
        h[i] = (t == 0 ? w / M_PI : sin(w * t) / (M_PI * t)) * (0.54 - 0.46 * cos(2 * M_PI * i / (TAPS - 1)));
    }
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) volk_32f_x2_dot_prod_32f(o + i, x + i, h, TAPS);
}
double checksum() { return weighed(o, n); }
