#include "peer.h"
static const int DAYS = 250;
static i64 n;
static float *x, *fall, *last;
void setup(i64 size) { n = size, x = units(n * DAYS, 29, -0.02f, 0.021f), fall = make<float>(n), last = make<float>(n); }
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) {
        float level = 0, most = -1e30f, worst = 0;
        for (int d = 0; d < DAYS; d++) level += x[i * DAYS + d], most = std::max(most, level), worst = std::max(worst, most - level);
        fall[i] = worst, last[i] = level;
    }
}
double checksum() { return weighed(fall, n) + weighed(last, n); }
