// The bank as one loop over tiles of the output. The first filter of each band runs only where a sample is kept, the
// second only over samples that are not zero.
#include "peer.h"
enum { TAPS = 32, BANDS = 8, TILE = 512 };
static i64 n;
static float *x, *o, h[BANDS][TAPS];
void setup(i64 size) {
    n = size / BANDS * BANDS, x = units(n + 2 * (TILE + TAPS), 1, -0.5f, 0.5f), o = make<float>(n + TILE);
    for (int b = 0; b < BANDS; b++) for (int i = 0; i < TAPS; i++) {
        double t = M_PI * (i - (TAPS - 1) / 2.0) / BANDS, low = t == 0 ? 1 : sin(t / 2) / (t / 2);
        h[b][i] = (0.54 - 0.46 * cos(2 * M_PI * i / (TAPS - 1))) * low * cos(t * (b + 0.5)) / BANDS;
    }
}
void run() {
    enum { KEPT = (TILE + TAPS) / BANDS };
    #pragma omp parallel for schedule(static)
    for (i64 first = 0; first < n; first += TILE) {
        alignas(64) float phase[BANDS][KEPT + TAPS / BANDS + 1], sum[BANDS][TILE / BANDS] = {};
        for (int i = 0; i < KEPT + TAPS / BANDS; i++) for (int p = 0; p < BANDS; p++) phase[p][i] = x[first + i * BANDS + p];
        for (int b = 0; b < BANDS; b++) {
            float kept[KEPT] = {};
            for (int k = 0; k < TAPS; k++) for (int i = 0; i < KEPT; i++) kept[i] += h[b][k] * phase[k % BANDS][i + k / BANDS];
            for (int i = 0; i < KEPT; i++) kept[i] *= (1 + 0.25f * b) * BANDS;
            // Output r of a group of eight sees samples at the taps whose place is a multiple of eight. The groups begin
            // with the second output of the stream.
            for (int r = 0; r < BANDS; r++) for (int k = BANDS - 1 - r; k < TAPS; k += BANDS)
                for (int i = 0; i < TILE / BANDS; i++) sum[r][i] += h[b][k] * kept[i + (r + 1 + k) / BANDS];
        }
        for (int i = 0; i < TILE / BANDS; i++) for (int r = 0; r < BANDS; r++) o[first + i * BANDS + r] = sum[r][i];
    }
}
double checksum() { return weighed(o, n); }
