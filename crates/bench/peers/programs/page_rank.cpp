#include "peer.h"
static i64 n;
static int *offsets, *sources;
static float *inverse, *dangling, *rank_, *shares, *next_;
void setup(i64 size) {
    n = size, offsets = make<int>(n + 1);
    for (i64 i = 0; i < n; i++) {
        uint32_t h = hashed((uint32_t)i, 5), l = (h >> 8) % 14;
        offsets[i + 1] = offsets[i] + (int)((h & 255) == 0 ? l * 138 : l);
    }
    sources = filled<int>(offsets[n], [](i64 k) { return (int)(hashed((uint32_t)k, 6) % (uint32_t)n); });
    inverse = make<float>(n), dangling = make<float>(n), rank_ = make<float>(n), shares = make<float>(n), next_ = make<float>(n);
    for (i64 k = 0; k < offsets[n]; k++) inverse[sources[k]]++;
    for (i64 i = 0; i < n; i++) dangling[i] = inverse[i] == 0, inverse[i] = inverse[i] > 0 ? 1 / inverse[i] : 0;
}
void run() {
    std::fill(rank_, rank_ + n, 1.0f / n);
    for (int round = 0; round < 3; round++) {
        float lost = 0;
        #pragma omp parallel for reduction(+:lost) schedule(static)
        for (i64 i = 0; i < n; i++) shares[i] = rank_[i] * inverse[i], lost += rank_[i] * dangling[i];
        #pragma omp parallel for schedule(dynamic, 1024)
        for (i64 i = 0; i < n; i++) {
            float sum = 0;
            for (int k = offsets[i]; k < offsets[i + 1]; k++) sum += shares[sources[k]];
            next_[i] = (sum + lost / n) * 0.85f + 0.15f / n;
        }
        std::swap(rank_, next_);
    }
}
double checksum() { return weighed(rank_, n); }
