// The beamformer as one loop over tiles of time: antennas are filtered into a small array, then mixed to beams.
#include "peer.h"
enum { ANTENNAS = 12, BEAMS = 4, TAPS = 64, DECIMATION = 2, TILE = 64 };
static i64 n;
static float *x, *o, h[TAPS], wr[BEAMS][ANTENNAS], wi[BEAMS][ANTENNAS];
void setup(i64 size) {
    n = size / DECIMATION;
    x = units(2 * ANTENNAS * (size + 2 * TAPS + 2 * DECIMATION * TILE), 1, -0.5f, 0.5f), o = make<float>(2 * BEAMS * (n + TILE));
    for (int i = 0; i < TAPS; i++) h[i] = (1 - cos(2 * M_PI * (i + 1) / (TAPS + 1))) / (TAPS + 1);
    for (int b = 0; b < BEAMS; b++) for (int a = 0; a < ANTENNAS; a++) {
        double angle = M_PI * a * (2 * b + 1 - BEAMS) / BEAMS;
        wr[b][a] = cos(angle) / ANTENNAS, wi[b][a] = -sin(angle) / ANTENNAS;
    }
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 first = 0; first < n; first += TILE) {
        for (int t = 0; t < TILE; t++) {
            // All antennas together are a row of 24 floats, real and imaginary parts by turns.
            float row[2 * ANTENNAS] = {};
            const float* s = x + 2 * ANTENNAS * DECIMATION * (first + t);
            for (int k = 0; k < TAPS; k++) for (int a = 0; a < 2 * ANTENNAS; a++) row[a] += h[k] * s[k * 2 * ANTENNAS + a];
            for (int b = 0; b < BEAMS; b++) {
                float re = 0, im = 0;
                for (int a = 0; a < ANTENNAS; a++) {
                    re += wr[b][a] * row[2 * a] - wi[b][a] * row[2 * a + 1];
                    im += wr[b][a] * row[2 * a + 1] + wi[b][a] * row[2 * a];
                }
                float* p = o + 2 * ((first + t) * BEAMS + b);
                p[0] = re, p[1] = im;
            }
        }
    }
}
double checksum() { return weighed(o, 2 * n * BEAMS); }
