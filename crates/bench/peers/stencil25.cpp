#include "peer.h"
static i64 n;
static float *in, *out, w[5][5];
void setup(i64 size) {
    n = size, in = units(n * n, 1), out = make<float>(n * n);
    for (int k = 0; k < 25; k++) w[k / 5][k % 5] = unit(k, 2);
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 y = 2; y < n - 2; y++) {
        const float* c = in + (y - 2) * n;
        float* __restrict o = out + y * n;
        for (i64 x = 2; x < n - 2; x++) {
            float s = 0;
            #pragma GCC unroll 5
            for (int j = 0; j < 5; j++) {
                #pragma GCC unroll 5
                for (int i = 0; i < 5; i++) s += w[j][i] * c[j * n + x + i - 2];
            }
            o[x] = s;
        }
    }
}
double checksum() { return weighed(out, n * n); }
