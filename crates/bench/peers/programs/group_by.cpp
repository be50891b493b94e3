// Each thread has groups of its own, which are joined behind.
#include "peer.h"
static const i64 KEYS = 10000;
static i64 n;
static int* keys;
static float *x, *sums, *counts, *most;
void setup(i64 size) {
    n = size, keys = filled<int>(n, [](i64 i) { return (int)(hashed((uint32_t)i, 21) % (uint32_t)KEYS); }), x = units(n, 22);
    sums = make<float>(KEYS), counts = make<float>(KEYS), most = make<float>(KEYS);
}
void run() {
    std::fill(sums, sums + KEYS, 0.0f), std::fill(counts, counts + KEYS, 0.0f), std::fill(most, most + KEYS, 0.0f);
    #pragma omp parallel for schedule(static) reduction(+:sums[:KEYS],counts[:KEYS]) reduction(max:most[:KEYS])
    for (i64 i = 0; i < n; i++) sums[keys[i]] += x[i], counts[keys[i]]++, most[keys[i]] = std::max(most[keys[i]], x[i]);
}
double checksum() { return weighed(sums, KEYS) + weighed(counts, KEYS) + weighed(most, KEYS); }
