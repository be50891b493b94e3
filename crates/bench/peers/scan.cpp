// Each thread sums its part, then scans it with what came before.
#include "peer.h"
static i64 n;
static uint32_t *x, *y;
void setup(i64 size) {
    n = size, y = make<uint32_t>(n);
    x = filled<uint32_t>(n, [](i64 i) { return hashed((uint32_t)i, 1) >> 24; });
}
void run() {
    static uint32_t sums[1024];
    #pragma omp parallel num_threads(std::min(omp_get_max_threads(), 1024))
    {
        int threads = omp_get_num_threads(), me = omp_get_thread_num();
        i64 a = n * me / threads, b = n * (me + 1) / threads;
        uint32_t s = 0;
        #pragma omp simd reduction(+:s)
        for (i64 i = a; i < b; i++) s += x[i];
        sums[me] = s;
        #pragma omp barrier
        s = 0;
        for (int t = 0; t < me; t++) s += sums[t];
        #pragma omp simd reduction(inscan, +:s)
        for (i64 i = a; i < b; i++) {
            s += x[i];
            #pragma omp scan inclusive(s)
            y[i] = s;
        }
    }
}
double checksum() { return weighed(y, n); }
