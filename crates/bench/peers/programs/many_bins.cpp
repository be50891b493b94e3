#include "peer.h"
static const i64 BINS = 1000000;
static i64 n;
static int* keys;
static uint32_t* counts;
void setup(i64 size) { n = size, keys = filled<int>(n, [](i64 i) { return (int)(hashed((uint32_t)i, 25) % (uint32_t)BINS); }), counts = make<uint32_t>(BINS); }
void run() {
    std::fill(counts, counts + BINS, 0u);
    #pragma omp parallel for schedule(static) reduction(+:counts[:BINS])
    for (i64 i = 0; i < n; i++) counts[keys[i]]++;
}
double checksum() { return weighed(counts, BINS); }
