// In tiles that fit the first cache, both sides of which are used whole.
#include "peer.h"
static i64 n;
static float *in, *out;
void setup(i64 size) { n = size, in = units(n * n, 1), out = make<float>(n * n); }
void run() {
    const i64 tile = 32;
    #pragma omp parallel for collapse(2) schedule(static)
    for (i64 y = 0; y < n; y += tile)
        for (i64 x = 0; x < n; x += tile) {
            float t[tile][tile];
            for (i64 j = 0; j < tile; j++)
                for (i64 i = 0; i < tile; i++) t[j][i] = in[(y + j) * n + x + i];
            for (i64 i = 0; i < tile; i++)
                for (i64 j = 0; j < tile; j++) out[(x + i) * n + y + j] = t[j][i];
        }
}
double checksum() { return weighed(out, n * n); }
