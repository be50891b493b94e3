// Four rows at a time, so that the vector is read once for them.
#include "peer.h"
static i64 n;
static float *A, *x, *y;
void setup(i64 size) { n = size, A = units(n * n, 1), x = units(n, 2), y = make<float>(n); }
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 b = 0; b < n; b += 4) {
        if (b + 4 <= n) {
            const float *a0 = A + b * n, *a1 = a0 + n, *a2 = a1 + n, *a3 = a2 + n;
            float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            #pragma omp simd reduction(+:s0,s1,s2,s3)
            for (i64 j = 0; j < n; j++) { float v = x[j]; s0 += a0[j]*v; s1 += a1[j]*v; s2 += a2[j]*v; s3 += a3[j]*v; }
            y[b] = s0; y[b+1] = s1; y[b+2] = s2; y[b+3] = s3;
        } else for (i64 i = b; i < n; i++) {
            float s = 0;
            for (i64 j = 0; j < n; j++) s += A[i*n+j] * x[j];
            y[i] = s;
        }
    }
}
double checksum() { return weighed(y, n); }
