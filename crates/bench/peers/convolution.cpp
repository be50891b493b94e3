// Rows are summed downwards into one row, which is then summed along.
#include "peer.h"
#include <vector>
static i64 n;
static float *x, *o, k[3];
void setup(i64 size) {
    n = size, x = units(n * n, 1), o = make<float>(n * n);
    double bell[3] = {exp(-2.0), exp(-0.5), 1.0}, sum = 2 * bell[0] + 2 * bell[1] + bell[2];
    for (int j = 0; j < 3; j++) k[j] = (float)(bell[j] / sum);
}
void run() {
    float k0 = k[0], k1 = k[1], k2 = k[2];
    #pragma omp parallel
    {
        std::vector<float> t(n + 4);
        #pragma omp for schedule(static)
        for (i64 y = 0; y < n; y++) {
            const float* r[5];
            for (i64 j = 0; j < 5; j++) r[j] = x + std::min(std::max(y + j - 2, (i64)0), n - 1) * n;
            float* __restrict v = t.data() + 2; float* __restrict q = o + y * n;
            for (i64 i = 0; i < n; i++) v[i] = (r[0][i] + r[4][i]) * k0 + (r[1][i] + r[3][i]) * k1 + r[2][i] * k2;
            v[-2] = v[-1] = v[0]; v[n] = v[n + 1] = v[n - 1];
            for (i64 i = 0; i < n; i++) q[i] = (v[i-2] + v[i+2]) * k0 + (v[i-1] + v[i+1]) * k1 + v[i] * k2;
        }
    }
}
double checksum() { return weighed(o, n * n); }
