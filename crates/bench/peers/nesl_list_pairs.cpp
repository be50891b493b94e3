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
    #pragma omp parallel for schedule(dynamic, 1024)
    for (i64 r = 0; r < n; r++) {
        float sum = 0;
        for (int i = ptr[r]; i < ptr[r + 1]; i++) for (int j = i + 1; j < ptr[r + 1]; j++) sum += fabsf(x[i] - x[j]);
        out[r] = sum;
    }
}
double checksum() { return weighed(out, n); }
