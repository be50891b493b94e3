#include "peer.h"
static inline float cnd(float d) {
    float k = 1.f / (1.f + 0.2316419f * fabsf(d));
    float c = 0.39894228040143267794f * expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.f - c : c;
}
static i64 n;
static float *S, *K, *T, *call, *put;
void setup(i64 size) {
    n = size, S = units(n, 1, 5.0f, 30.0f), K = units(n, 2, 1.0f, 100.0f), T = units(n, 3, 0.25f, 10.0f);
    call = make<float>(n), put = make<float>(n);
}
void run() {
    const float r = 0.02f, v = 0.30f;
    #pragma omp parallel for simd schedule(static)
    for (i64 i = 0; i < n; i++) {
        float sq = sqrtf(T[i]), d1 = (logf(S[i] / K[i]) + (r + 0.5f * v * v) * T[i]) / (v * sq), d2 = d1 - v * sq;
        float n1 = cnd(d1), n2 = cnd(d2), e = K[i] * expf(-r * T[i]);
        call[i] = S[i] * n1 - e * n2; put[i] = e * (1.f - n2) - S[i] * (1.f - n1);
    }
}
double checksum() { return weighed(call, n) + weighed(put, n, n); }
