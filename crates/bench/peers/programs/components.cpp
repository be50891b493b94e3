#include "peer.h"
static i64 n;
static int *from, *to, *label, *met;
static int* ends(uint32_t seed) { return filled<int>(n, [=](i64 i) { return (int)(hashed((uint32_t)i, seed) % (uint32_t)n); }); }
void setup(i64 size) { n = size, from = ends(3), to = ends(4), label = make<int>(n), met = make<int>(n); }
void run() {
    for (i64 i = 0; i < n; i++) label[i] = (int)i;
    for (int round = 0; round < 8; round++) {
        memcpy(met, label, n * 4);
        for (i64 e = 0; e < n; e++) {
            int a = label[from[e]], b = label[to[e]], low = std::min(a, b);
            met[a] = std::min(met[a], low), met[b] = std::min(met[b], low);
        }
        #pragma omp parallel for schedule(static)
        for (i64 i = 0; i < n; i++) label[i] = met[met[i]];
    }
}
double checksum() { return weighed(label, n); }
