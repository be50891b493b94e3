// The algorithm of Stockham in place of a row, with a table of turns.
#include "peer.h"
static const int L = 1024;
static i64 n;
static float *x, *re, *im, *cosines, *sines;
void setup(i64 size) {
    n = size, x = units(n * L, 26, -1.0f, 1.0f), re = make<float>(n * L), im = make<float>(n * L);
    cosines = filled<float>(L, [](i64 k) { return (float)cos(-2 * M_PI * k / L); }), sines = filled<float>(L, [](i64 k) { return (float)sin(-2 * M_PI * k / L); });
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 row = 0; row < n; row++) {
        float space[4 * L], *ar = space, *ai = space + L, *br = space + 2 * L, *bi = space + 3 * L;
        memcpy(ar, x + row * L, 4 * L), memset(ai, 0, 4 * L);
        for (int stride = 1; stride < L; stride *= 2) {
            int half = L / 2 / stride;
            for (int h = 0; h < half; h++) {
                float c = cosines[h * stride], s = sines[h * stride];
                for (int k = 0; k < stride; k++) {
                    int from = h * stride + k, to = 2 * h * stride + k;
                    float dr = ar[from] - ar[from + L / 2], di = ai[from] - ai[from + L / 2];
                    br[to] = ar[from] + ar[from + L / 2], bi[to] = ai[from] + ai[from + L / 2];
                    br[to + stride] = dr * c - di * s, bi[to + stride] = dr * s + di * c;
                }
            }
            std::swap(ar, br), std::swap(ai, bi);
        }
        memcpy(re + row * L, ar, 4 * L), memcpy(im + row * L, ai, 4 * L);
    }
}
double checksum() { return weighed(re, n * L) + weighed(im, n * L); }
