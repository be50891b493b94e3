#include "peer.h"
static i64 n;
static int *ptr, *out;
static float* x;
void setup(i64 size) {
    n = size, ptr = make<int>(n + 1), out = make<int>(n);
    for (i64 r = 0; r < n; r++) ptr[r + 1] = ptr[r] + ragged((uint32_t)r, 2);
    x = units(ptr[n], 14);
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 r = 0; r < n; r++) {
        int best = -1;
        for (int i = ptr[r]; i < ptr[r + 1]; i++) if (best < 0 || x[i] < x[ptr[r] + best]) best = i - ptr[r];
        out[r] = best;
    }
}
double checksum() { return weighed(out, n); }
