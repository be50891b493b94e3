#include "peer.h"
static i64 n;
static int* ptr;
static float *x, *out;
void setup(i64 size) {
    n = size, ptr = make<int>(n + 1);
    for (i64 r = 0; r < n; r++) ptr[r + 1] = ptr[r] + ragged((uint32_t)r, 5);
    x = units(ptr[n], 14), out = make<float>(ptr[n]);
}
void run() {
    #pragma omp parallel for schedule(dynamic, 1024)
    for (i64 r = 0; r < n; r++) {
        std::copy(x + ptr[r], x + ptr[r + 1], out + ptr[r]);
        std::sort(out + ptr[r], out + ptr[r + 1]);
    }
}
double checksum() { return weighed(out, ptr[n]); }
