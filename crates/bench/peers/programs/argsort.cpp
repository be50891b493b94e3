#include "peer.h"
#include <parallel/algorithm>
static i64 n;
static float* x;
static int* y;
void setup(i64 size) { n = size, x = units(n, 16), y = make<int>(n); }
void run() {
    #pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; i++) y[i] = (int)i;
    __gnu_parallel::stable_sort(y, y + n, [](int a, int b) { return x[a] < x[b]; });
}
double checksum() { return weighed(y, n); }
