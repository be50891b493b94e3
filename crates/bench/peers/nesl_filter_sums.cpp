#include "peer.h"
static i64 n;
static int* ptr;
static float *x, *out;
void setup(i64 size) {
    n = size, ptr = make<int>(n + 1), out = make<float>(n);
    for (i64 r = 0; r < n; r++) ptr[r + 1] = ptr[r] + ragged((uint32_t)r, 5);
    x = units(ptr[n], 14);
}
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 r = 0; r < n; r++) {
        float sum = 0;
        for (int i = ptr[r]; i < ptr[r + 1]; i++) sum += x[i] > 0.5f ? x[i] : 0.0f;
        out[r] = sum;
    }
}
double checksum() { return weighed(out, n); }
