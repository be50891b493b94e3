#include "peer.h"
static i64 n;
static float *right, *x, *r, *p, *q;
void setup(i64 size) {
    n = size, right = units(n * n, 7, -0.5f, 0.5f), x = make<float>(n * n), r = make<float>(n * n), p = make<float>(n * n), q = make<float>(n * n);
}
void run() {
    double square = 0;
    #pragma omp parallel for reduction(+:square) schedule(static)
    for (i64 k = 0; k < n * n; k++) x[k] = 0, r[k] = p[k] = right[k], square += r[k] * r[k];
    for (int round = 0; round < 10; round++) {
        double along = 0, next = 0;
        #pragma omp parallel for reduction(+:along) schedule(static)
        for (i64 i = 0; i < n; i++) {
            const float* own = p + i * n;
            for (i64 j = 0; j < n; j++) {
                float a = own[j] * 4.0f - (i > 0 ? own[j - n] : 0) - (i < n - 1 ? own[j + n] : 0) - (j > 0 ? own[j - 1] : 0) - (j < n - 1 ? own[j + 1] : 0);
                q[i * n + j] = a, along += own[j] * a;
            }
        }
        float alpha = (float)(square / along);
        #pragma omp parallel for reduction(+:next) schedule(static)
        for (i64 k = 0; k < n * n; k++) x[k] += p[k] * alpha, r[k] -= q[k] * alpha, next += r[k] * r[k];
        float beta = (float)(next / square);
        #pragma omp parallel for schedule(static)
        for (i64 k = 0; k < n * n; k++) p[k] = r[k] + p[k] * beta;
        square = next;
    }
}
double checksum() { return weighed(x, n * n); }
