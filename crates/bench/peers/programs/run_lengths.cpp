// Each thread counts the runs of its part, then writes them behind those of the parts before.
#include "peer.h"
static i64 n, runs;
static uint8_t *a, *levels;
static int *starts, *lengths;
void setup(i64 size) {
    n = size, a = filled<uint8_t>(n, [](i64 i) { return (uint8_t)(hashed((uint32_t)(i / 5), 8) % 5); });
    levels = make<uint8_t>(n), starts = make<int>(n + 1), lengths = make<int>(n);
}
void run() {
    i64 firsts[1025] = {};
    #pragma omp parallel
    {
        i64 threads = omp_get_num_threads(), me = omp_get_thread_num(), from = n * me / threads, to = n * (me + 1) / threads, own = 0;
        for (i64 i = from; i < to; i++) own += i == 0 || a[i] != a[i - 1];
        firsts[me + 1] = own;
        #pragma omp barrier
        i64 at = 0;
        for (i64 k = 0; k <= me; k++) at += firsts[k];
        for (i64 i = from; i < to; i++) {
            if (i == 0 || a[i] != a[i - 1]) starts[at] = (int)i, levels[at++] = a[i];
        }
        if (me == threads - 1) runs = at, starts[at] = (int)n;
        #pragma omp barrier
        #pragma omp for schedule(static)
        for (i64 k = 0; k < runs; k++) lengths[k] = starts[k + 1] - starts[k];
    }
}
double checksum() { return weighed(lengths, runs); }
