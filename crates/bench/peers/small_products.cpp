// Pairs of matrices of 32×32, one after the other; a row of the result stays in registers.
#include "peer.h"
enum { N = 32 };
static i64 pairs;
static float *x, *o;
void setup(i64 n) { pairs = n, x = units(2 * n * N * N, 1, -0.5f, 0.5f), o = make<float>(n * N * N); }
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 p = 0; p < pairs; p++) {
        const float *a = x + 2 * p * N * N, *b = a + N * N;
        for (int i = 0; i < N; i += 4) {
            float sum[4][N] = {};
            for (int k = 0; k < N; k++) for (int r = 0; r < 4; r++) for (int j = 0; j < N; j++) sum[r][j] += a[(i + r) * N + k] * b[k * N + j];
            memcpy(o + p * N * N + i * N, sum, sizeof sum);
        }
    }
}
double checksum() { return weighed(o, pairs * N * N); }
