#include "peer.h"
static i64 n, kept;
static float *x, *y;
void setup(i64 size) { n = size, x = units(n, 9), y = make<float>(n + 1); }
void run() {
    i64 counts[1025] = {};
    #pragma omp parallel
    {
        i64 threads = omp_get_num_threads(), me = omp_get_thread_num(), from = n * me / threads, to = n * (me + 1) / threads, own = 0, at = 0;
        for (i64 i = from; i < to; i++) own += x[i] > 0.5f;
        counts[me + 1] = own;
        #pragma omp barrier
        for (i64 k = 0; k <= me; k++) at += counts[k];
        for (i64 i = from; i < to; i++) if (x[i] > 0.5f) y[at++] = x[i];
        if (me == threads - 1) kept = at;
    }
}
double checksum() { return weighed(y, kept); }
