// 32 points of a row in step, until the last of them has escaped.
#include "peer.h"
static i64 n;
static int* out;
void setup(i64 size) { n = size, out = make<int>(n * n); }
void run() {
    const int lanes = 32, limit = 256;
    const float left = -2.0f, top = -1.25f, step = 2.5f / (float)n;
    #pragma omp parallel for schedule(dynamic, 4)
    for (i64 row = 0; row < n; row++) {
        float cy = top + step * (float)row;
        for (i64 start = 0; start < n; start += lanes) {
            float cx[lanes], x[lanes], y[lanes];
            int steps[lanes], active = 1;
            for (int l = 0; l < lanes; l++) cx[l] = left + step * (float)(start + l), x[l] = y[l] = 0, steps[l] = 0;
            for (int i = 0; i < limit && active; i++) {
                active = 0;
                #pragma omp simd reduction(|:active)
                for (int l = 0; l < lanes; l++) {
                    float xx = x[l] * x[l], yy = y[l] * y[l];
                    int in = xx + yy <= 4.0f;
                    // A point that has escaped stays away: it is not looked at again once its steps fall behind.
                    in &= steps[l] == i;
                    y[l] = 2.0f * x[l] * y[l] + cy;
                    x[l] = xx - yy + cx[l];
                    steps[l] += in;
                    active |= in;
                }
            }
            i64 count = std::min<i64>(lanes, n - start);
            for (i64 l = 0; l < count; l++) out[row * n + start + l] = steps[l];
        }
    }
}
double checksum() { return weighed(out, n * n); }
