// A filter of TAPS taps: outputs in vectors, the taps inside.
#include "peer.h"
enum { TILE = 64 };
static i64 n;
static float *x, *o, h[TAPS];
void setup(i64 size) {
    n = size, x = units(n + TAPS, 1, -0.5f, 0.5f), o = make<float>(n);
    low_pass(h, TAPS, 8000, 1000, (TAPS - 1) / 2.0);
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
