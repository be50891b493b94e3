#include "peer.h"
// Weights of a low pass: a windowed sinc. The middle need not be a whole number.
static inline void low_pass(float* h, int taps, double rate, double cutoff, double middle) {
    double w = 2 * M_PI * cutoff / rate;
    for (int i = 0; i < taps; i++) {
        double t = i - middle;
        h[i] = (t == 0 ? w / M_PI : sin(w * t) / (M_PI * t)) * (0.54 - 0.46 * cos(2 * M_PI * i / (taps - 1)));
    }
}
