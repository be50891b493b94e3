#include "peer.h"
static i64 n;
static float *p, c[16 * 8];
void setup(i64 size) { n = size, p = units(n * 8, 2); }
void run() {
    memcpy(c, p, sizeof c);
    for (int round = 0; round < 2; round++) {
        float sums[16 * 8] = {}, counts[16] = {};
        #pragma omp parallel for schedule(static) reduction(+:sums,counts)
        for (i64 i = 0; i < n; i++) {
            float d[16];
            for (int m = 0; m < 16; m++) {
                d[m] = 0;
                for (int k = 0; k < 8; k++) d[m] += (p[i * 8 + k] - c[m * 8 + k]) * (p[i * 8 + k] - c[m * 8 + k]);
            }
            int best = 0;
            for (int m = 1; m < 16; m++) if (d[m] < d[best]) best = m;
            counts[best]++;
            for (int k = 0; k < 8; k++) sums[best * 8 + k] += p[i * 8 + k];
        }
        for (int k = 0; k < 16 * 8; k++) c[k] = sums[k] / std::max(counts[k / 8], 1.0f);
    }
}
double checksum() { return weighed(c, 16 * 8); }
