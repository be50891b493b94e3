// 16 rows at a time, each in a lane of its own: every step of the network is a minimum and a maximum of whole vectors.
#include "peer.h"
enum { KEYS = 1024, LANES = 16 };
static i64 n;
static uint32_t *in, *out;
void setup(i64 rows) {
    n = rows, out = make<uint32_t>(n * KEYS);
    in = filled<uint32_t>(n * KEYS, [](i64 i) { return hashed((uint32_t)i, 1); });
}
static inline void exchange(uint32_t* a, uint32_t* b) {
    #pragma omp simd aligned(a, b: 64)
    for (int l = 0; l < LANES; l++) {
        uint32_t x = a[l], y = b[l];
        a[l] = x < y ? x : y, b[l] = x < y ? y : x;
    }
}
static void network(uint32_t (*v)[LANES]) {
    for (int size = 2; size <= KEYS; size *= 2)
        for (int distance = size / 2; distance > 0; distance /= 2)
            for (int start = 0; start < KEYS; start += 2 * distance) {
                bool descending = start & size;
                for (int i = start; i < start + distance; i++)
                    descending ? exchange(v[i + distance], v[i]) : exchange(v[i], v[i + distance]);
            }
}
void run() {
    #pragma omp parallel
    {
        uint32_t (*v)[LANES] = (uint32_t (*)[LANES])aligned_alloc(64, sizeof(uint32_t[KEYS][LANES]));
        #pragma omp for schedule(static)
        for (i64 first = 0; first < n; first += LANES) {
            i64 rows = std::min<i64>(LANES, n - first);
            const uint32_t* from = in + first * KEYS;
            uint32_t* to = out + first * KEYS;
            for (i64 r = 0; r < rows; r++)
                for (int k = 0; k < KEYS; k++) v[k][r] = from[r * KEYS + k];
            network(v);
            for (i64 r = 0; r < rows; r++)
                for (int k = 0; k < KEYS; k++) to[r * KEYS + k] = v[k][r];
        }
        free(v);
    }
}
double checksum() { return weighed(out, n * KEYS); }
