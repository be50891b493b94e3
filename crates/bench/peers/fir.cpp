// A filter of TAPS taps: outputs in vectors, the taps inside.
#include "peer.h"
enum { TILE = 64 };
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
    for (i64 first = 0; first < n; first += TILE) {
        int count = (int)std::min<i64>(TILE, n - first);
        float sum[TILE] = {};
        if (count == TILE) {
            for (int k = 0; k < TAPS; k++) for (int i = 0; i < TILE; i++) sum[i] += h[k] * x[first + k + i];
        } else {
            for (int k = 0; k < TAPS; k++) for (int i = 0; i < count; i++) sum[i] += h[k] * x[first + k + i];
        }
        memcpy(o + first, sum, count * sizeof(float));
    }
}
double checksum() { return weighed(o, n); }
