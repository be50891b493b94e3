// The vocoder as one loop over tiles of the output, band by band.
#include "peer.h"
enum { TAPS = 32, BANDS = 8, SMOOTH = 64, STEP = 16, TILE = 512, WIDE = TILE + STEP + SMOOTH };
static i64 n;
static float *x, *o, h[BANDS][TAPS];
void setup(i64 size) {
    n = size / STEP * STEP, x = units(2 * (n + 2 * (WIDE + TAPS)), 1, -0.5f, 0.5f), o = make<float>(n + TILE);
    for (int b = 0; b < BANDS; b++) for (int i = 0; i < TAPS; i++) {
        double middle = 2000 * (b + 0.5) / BANDS;
        h[b][i] = (1 - cos(2 * M_PI * (i + 1) / (TAPS + 1))) * cos(2 * M_PI * middle * (i - TAPS / 2) / 8000) / TAPS;
    }
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 first = 0; first < n; first += TILE) {
        alignas(64) float voice[WIDE + TAPS], carrier[WIDE + TAPS], sum[TILE] = {};
        for (int i = 0; i < WIDE + TAPS; i++) voice[i] = x[2 * (first + i)], carrier[i] = x[2 * (first + i) + 1];
        for (int b = 0; b < BANDS; b++) {
            float a[WIDE] = {}, c[TILE] = {}, loud[TILE / STEP + 1];
            for (int k = 0; k < TAPS; k++) for (int i = 0; i < WIDE; i++) a[i] += h[b][k] * voice[i + k];
            for (int k = 0; k < TAPS; k++) for (int i = 0; i < TILE; i++) c[i] += h[b][k] * carrier[i + k];
            for (int g = 0; g <= TILE / STEP; g++) {
                float total = 0;
                for (int i = 0; i < SMOOTH; i++) total += fabsf(a[g * STEP + i]);
                loud[g] = total / SMOOTH;
            }
            for (int g = 0; g < TILE / STEP; g++) for (int i = 0; i < STEP; i++)
                sum[g * STEP + i] += c[g * STEP + i] * (loud[g] + (loud[g + 1] - loud[g]) * i / STEP);
        }
        memcpy(o + first, sum, sizeof sum);
    }
}
double checksum() { return weighed(o, n); }
